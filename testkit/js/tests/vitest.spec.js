import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import zookeeper from 'node-zookeeper-client';
import { startServer } from '@gozkd/testkit';

let server, empty, client;

beforeAll(async () => {
  server = await startServer(); // one for the file
  empty = await server.snapshot();
});
beforeEach(async () => {
  client?.close();
  await server.reset(empty); // nothing is left of the test before
  client = zookeeper.createClient(server.connectString, { sessionTimeout: 10_000, spinDelay: 50, retries: 0 });
  await new Promise((resolve) => client.once('connected', resolve).connect());
});
afterAll(async () => {
  client?.close();
  await server.close();
});

const call = (method, ...args) =>
  new Promise((resolve, reject) => client[method](...args, (e, value) => (e ? reject(e) : resolve(value))));

test('a create whose reply is lost was carried out', async () => {
  await server.dropReply('create', { path: '/job' });
  await expect(call('create', '/job')).rejects.toMatchObject({ code: zookeeper.Exception.CONNECTION_LOSS });
  expect(await server.tree()).toEqual({ '/': '', '/job': null });
});

test('an ephemeral goes with its session, an hour later', async () => {
  await call('create', '/alive', null, zookeeper.CreateMode.EPHEMERAL);
  await server.advance(3_600_000); // the client is connected: nothing expires
  expect(await server.tree()).toEqual({ '/': '', '/alive': null });
  client.close(); // ends the session
  await expect.poll(() => server.tree()).toEqual({ '/': '' });
});

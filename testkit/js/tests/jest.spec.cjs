const { expect, test } = require('@jest/globals');
const zookeeper = require('node-zookeeper-client');
const { startServer } = require('@gozkd/testkit');

test('a session that ends takes its znodes along, and its client hears of it', async () => {
  const server = await startServer();
  const client = zookeeper.createClient(server.connectString, { sessionTimeout: 4_000, spinDelay: 50, retries: 0 });
  await new Promise((resolve) => client.once('connected', resolve).connect());
  await new Promise((resolve) => client.create('/alive', null, zookeeper.CreateMode.EPHEMERAL, resolve));
  const again = new Promise((resolve) => client.once('connected', resolve));
  await server.dropReply('exists');
  expect(await new Promise((resolve) => client.exists('/alive', resolve))).toMatchObject({ code: zookeeper.Exception.CONNECTION_LOSS });
  await again;
  await server.advance(3_600_000); // the client is connected: nothing expires
  expect(await server.tree()).toEqual({ '/': '', '/alive': null });
  const expired = new Promise((resolve) => client.once('expired', resolve));
  await server.expireSession(client.getSessionId());
  await expired;
  expect(await server.tree()).toEqual({ '/': '' });
  client.close();
  await server.close();
});

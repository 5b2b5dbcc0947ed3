import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createConnection } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import zookeeper from 'node-zookeeper-client';
import { startEnsemble, startServer } from '@gozkd/testkit';

const { Exception } = zookeeper;
const clients = [];
after(() => clients.forEach((c) => c.close()));

function connect(connectString) {
  const client = zookeeper.createClient(connectString, { sessionTimeout: 10_000, spinDelay: 50, retries: 0 });
  clients.push(client);
  return new Promise((resolve) => {
    client.once('connected', () => resolve(client));
    client.connect();
  });
}

/** Calls a method with a callback; the promise is of its last value. */
const call = (client, method, ...args) =>
  new Promise((resolve, reject) => client[method](...args, (e, ...values) => (e ? reject(e) : resolve(values[0]))));

async function eventually(check) {
  for (const began = Date.now(); !(await check()); await sleep(10)) assert.ok(Date.now() - began < 20_000, 'it did not happen');
}

test('servers share nothing', async () => {
  const [one, other] = await Promise.all([startServer(), startServer()]);
  await one.load({ '/a/b': 'täxt', '/c': Buffer.from([0, 255]) });
  assert.deepEqual(await one.tree(), { '/': '', '/a': '', '/a/b': 'täxt', '/c': Buffer.from([0, 255]) });
  assert.deepEqual(await other.tree(), { '/': '' });
  await Promise.all([one.close(), other.close()]);
  await one.close();
  await assert.rejects(one.tree(), /closed/);
});

test('a reply is dropped', async () => {
  const server = await startServer();
  const client = await connect(server.connectString);
  const fault = await server.dropReply('create', { path: '/job' });
  await assert.rejects(call(client, 'create', '/job'), (e) => e.getCode() === Exception.CONNECTION_LOSS);
  assert.equal(await fault.wait(), true);
  assert.equal(await fault.count(), 1);
  await eventually(() => client.getState() === zookeeper.State.SYNC_CONNECTED);
  await assert.rejects(call(client, 'create', '/job'), (e) => e.getCode() === Exception.NODE_EXISTS); // it was carried out
  await server.close();
});

test('errors and delays', async () => {
  const server = await startServer();
  const client = await connect(server.connectString);
  const fault = await server.fail('exists', 'AuthFailed', { times: -1 });
  await assert.rejects(call(client, 'exists', '/'), (e) => e.getCode() === Exception.AUTH_FAILED);
  await assert.rejects(call(client, 'exists', '/'), (e) => e.getCode() === Exception.AUTH_FAILED);
  await fault.remove();
  const late = await server.delay('exists', 50);
  const began = performance.now();
  await call(client, 'exists', '/');
  assert.ok(performance.now() - began >= 49);
  assert.equal(await late.wait(0), true);
  await assert.rejects(server.fail('nothing', -101), /nothing/);
  await server.close();
});

test('time and sessions', async () => {
  const server = await startServer();
  const client = await connect(server.connectString);
  const other = await connect(server.connectString);
  await call(other, 'create', '/alive', Buffer.from('1'), zookeeper.CreateMode.EPHEMERAL);
  await server.advance(3_600_000); // both are connected
  assert.ok(await call(client, 'exists', '/alive'));
  assert.equal((await server.sessions()).length, 2);
  const expired = new Promise((resolve) => other.once('expired', resolve));
  const cut = new Promise((resolve) => other.once('disconnected', resolve));
  await server.cut(other.getSessionId());
  await cut;
  await eventually(() => other.getState() === zookeeper.State.SYNC_CONNECTED);
  await server.expireSession(other.getSessionId());
  await expired;
  assert.equal(await call(client, 'exists', '/alive'), null);
  await server.close();
});

test('snapshots', async () => {
  const server = await startServer();
  await server.load({ '/a': '1' });
  const before = await server.snapshot();
  await server.load({ '/a': '2', '/b': null });
  await server.reset(before);
  assert.deepEqual(await server.tree(), { '/': '', '/a': '1' });
  await connect(server.connectString);
  await server.kill();
  await server.renew(before);
  assert.deepEqual(await server.sessions(), []);
  assert.deepEqual(await server.tree(), { '/': '', '/a': '1' });
  await server.close();
});

test('stop, start, kill keep port and data', async () => {
  const server = await startServer();
  await server.load({ '/a': '1' });
  await server.stop();
  assert.equal((await server.members[0].status()).state, 'down');
  await server.start();
  await server.kill();
  await server.restart();
  assert.deepEqual(await server.tree('/a'), { '/a': '1' });
  await server.close();
});

test('the leader dies', async () => {
  const ensemble = await startEnsemble();
  const leader = await ensemble.leader();
  await leader.kill();
  const next = await ensemble.leader();
  assert.notEqual(next.number, leader.number);
  await leader.start();
  await ensemble.partition([next.number], ensemble.members.map((m) => m.number).filter((n) => n !== next.number));
  await eventually(async () => (await ensemble.leader()).number !== next.number);
  await ensemble.heal();
  await ensemble.stop();
  assert.deepEqual(await Promise.all(ensemble.members.map(async (m) => (await m.status()).state)), ['down', 'down', 'down']);
  await ensemble.start();
  await ensemble.leader();
  await ensemble.close();
});

test('certificates', async () => {
  const server = await startServer({ tls: true });
  const { ca, cert, key } = await server.certificate('alice');
  for (const pem of [ca, cert, key]) assert.match(pem, /^-----BEGIN /);
  await server.close();
});

test('start times', (t) => { // measured, not judged: the machine may be busy
  const program = `const { startServer } = await import('@gozkd/testkit');
const ms = [];
for (let i = 0; i < 51; i++) {
  const began = performance.now();
  const server = await startServer();
  ms.push(performance.now() - began);
  await server.close();
}
const [first, ...next] = ms;
console.log('JavaScript: first server', first.toFixed(0), 'ms, next', next.sort((a, b) => a - b)[25].toFixed(1), 'ms');`;
  t.diagnostic(execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' }).trim());
});

test('it ends with its process', async () => {
  const program = "const s = await (await import('@gozkd/testkit')).startServer(); console.log(s.connectString); process.kill(process.pid, 'SIGKILL')";
  let said;
  try {
    execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  } catch (e) {
    said = e.stdout;
  }
  const [host, port] = said.trim().split(':');
  await eventually(() => new Promise((resolve) => {
    createConnection(Number(port), host).on('connect', function () { this.destroy(); resolve(false); }).on('error', () => resolve(true));
  }));
});

test('a program that does not close its servers ends', () => {
  const program = "const s = await (await import('@gozkd/testkit')).startServer(); console.log(s.connectString)";
  assert.match(execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', timeout: 30_000 }), /127/);
});

// ZooKeeper servers for tests: they start in milliseconds, and break on purpose. index.d.ts says what
// each method does. CommonJS, so that jest takes it as it is; import finds the names, too.
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createInterface } = require('node:readline');

/** The program of GOZKD_TESTKIT, or that of the package for this platform. */
function program() {
  if (process.env.GOZKD_TESTKIT) return process.env.GOZKD_TESTKIT;
  const name = `@gozkd/testkit-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/gozkd-testkit${process.platform === 'win32' ? '.exe' : ''}`);
  } catch {
    throw new Error(`there is no gozkd-testkit: install ${name}, which is an optional dependency, or set GOZKD_TESTKIT to the program`);
  }
}

// The background process of this one, which runs all servers and ends with it.
let testkit;

async function start() {
  // With --stdin it ends with this process, also if that is killed.
  const child = spawn(program(), ['--stdin', '--log-level', 'error'], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(child, 'spawn');
  const { value: url } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  if (url === undefined) throw new Error('gozkd-testkit did not start: standard error has its reason');
  for (const it of [child, child.stdin, child.stdout]) it.unref();
  return url;
}

async function send(method, url, body) {
  const response = await fetch(url, { method, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(JSON.parse(text).error);
  return response.headers.get('content-type').startsWith('text/') ? text : JSON.parse(text);
}

const hex = (id) => (typeof id === 'string' ? id : id instanceof Uint8Array ? `0x${Buffer.from(id).toString('hex')}` : `0x${BigInt.asUintN(64, BigInt(id)).toString(16)}`);

async function begin(Kind, options) {
  const base = await (testkit ??= start());
  return new Kind(base, await send('POST', `${base}/servers`, options));
}

/** Starts a server; options are those of POST /servers. */
exports.startServer = (options = {}) => begin(Server, options);

/** Starts an ensemble. */
exports.startEnsemble = (size = 3, options = {}) => begin(Ensemble, { ...options, ensemble: size });

class Ensemble {
  #at;

  constructor(base, started) {
    this.#at = `${base}/servers/${started.id}`;
    this.connectString = started.client;
    this.members = started.members.map((m) => new Member(this, m.id, m.client));
  }

  async ask(method, path, body) {
    if (!this.#at) throw new Error('these servers are closed');
    return send(method, this.#at + path, body);
  }

  async close() {
    const at = this.#at;
    this.#at = undefined;
    if (at) await send('DELETE', at);
  }

  [Symbol.asyncDispose ?? Symbol('asyncDispose')]() { return this.close(); }

  async leader() { return this.members[(await this.ask('GET', '/leader')).id - 1]; }
  async stop() { await this.ask('POST', '/stop'); }
  async start() { await this.ask('POST', '/start'); }
  async partition(...groups) { await this.ask('POST', '/partition', { groups }); }
  async heal() { await this.ask('POST', '/heal'); }
  async #arm(fault) { return new Fault(this, (await this.ask('POST', '/faults', fault)).id); }
  dropReply(op, on = {}) { return this.#arm({ ...on, kind: 'dropReply', op }); }
  delay(op, ms, on = {}) { return this.#arm({ ...on, kind: 'delay', op, delay: `${ms}ms` }); }
  fail(op, code, on = {}) { return this.#arm({ ...on, kind: 'fail', op, code }); }
  async disarm() { await this.ask('DELETE', '/faults'); }
  sessions() { return this.ask('GET', '/sessions'); }
  async expireSession(id) { await this.ask('POST', `/sessions/${hex(id)}/expire`); }
  async cut(id) { await this.ask('POST', `/sessions/${hex(id)}/disconnect`); }
  async advance(ms) { await this.ask('POST', '/advance', { by: `${ms}ms` }); }

  async tree(path = '/') {
    const found = await this.ask('GET', `/tree?path=${encodeURIComponent(path)}`);
    return Object.fromEntries(Object.entries(found).map(([p, d]) => [p, d?.base64 === undefined ? d : Buffer.from(d.base64, 'base64')]));
  }

  async load(tree) {
    const data = (d) => (d instanceof Uint8Array ? { base64: Buffer.from(d).toString('base64') } : d);
    await this.ask('PUT', '/tree', Object.fromEntries(Object.entries(tree).map(([p, d]) => [p, data(d)])));
  }

  async snapshot() { return (await this.ask('POST', '/snapshot')).id; }

  async reset(snapshot) {
    await this.disarm();
    await this.ask('POST', '/rewind', { id: snapshot });
  }

  async renew(snapshot) { await this.ask('POST', '/rewind', { id: snapshot, all: true }); }
  certificate(name) { return this.ask('POST', '/certificate', { name }); }
  dump() { return this.ask('GET', '/dump'); }
}

class Server extends Ensemble {}

class Member {
  #ensemble;

  constructor(ensemble, number, address) {
    this.#ensemble = ensemble;
    this.number = number;
    this.address = address;
  }

  async status() { return (await this.#ensemble.ask('GET', '/status')).members[this.number - 1]; }
  async ask(what) { await this.#ensemble.ask('POST', `/members/${this.number}/${what}`); }
}

for (const what of ['stop', 'start', 'restart', 'kill', 'pause', 'resume', 'partition', 'heal', 'disconnect']) {
  Member.prototype[what] = function () { return this.ask(what); };
}
for (const what of ['restart', 'kill']) {
  Server.prototype[what] = function () { return this.members[0][what](); };
}

class Fault {
  #ensemble;
  #at;

  constructor(ensemble, id) {
    this.#ensemble = ensemble;
    this.#at = `/faults/${id}`;
  }

  async count() { return (await this.#ensemble.ask('GET', this.#at)).count; }
  async wait(ms = 5000) { return (await this.#ensemble.ask('GET', `${this.#at}?wait=${ms}ms`)).done; }
  async remove() { await this.#ensemble.ask('DELETE', this.#at); }
}

exports.Ensemble = Ensemble;
exports.Server = Server;
exports.Member = Member;

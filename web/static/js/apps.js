// Applications that are recognized by their znodes, and what matters of each.
import * as api from './api.js';
import {count, join} from './format.js';

const maxBases = 40; // directories that may be the root of an application
const maxRead = 60; // znodes that one application may have read

/**
 * findApps looks for applications at the root and one level below it: [{name, path, facts, bad}]. facts
 * are short texts; bad are those that somebody should look at.
 */
export async function findApps() {
  const top = await names('/', 1000).catch(() => []);
  const bases = ['/', ...top.filter((name) => name !== 'zookeeper').slice(0, maxBases).map((name) => join('/', name))];
  const found = await Promise.all(bases.map(async (base) => {
    const here = new Set(base === '/' ? top : await names(base, 1000).catch(() => []));
    return Promise.all([...kinds.filter((kind) => kind.signs.every((sign) => here.has(sign))).map((kind) => describe(kind, base)),
      ...kinds.filter((kind) => kind.holder === base).map((kind) => describe({name: kind.name, read: each(kind)}, base))]);
  }));
  return found.flat().filter(Boolean);
}

async function describe(kind, base) {
  const app = {name: kind.name, path: base, facts: [], bad: []};
  try {
    await kind.read(new Reader(base), app);
  } catch (error) {
    app.facts.push('not all of it is readable');
  }
  return app.facts.length || app.bad.length ? app : null;
}

// each reads the applications of a kind that are in its holder.
const each = (kind) => async (z, app) => {
  for (const name of (await z.names()).slice(0, 10)) {
    const inside = await z.names(name);
    if (kind.signs.every((sign) => inside.includes(sign))) {
      const one = {facts: [], bad: []};
      await kind.read(new Reader(z.path(name)), one);
      app.facts.push(...one.facts.map((f) => name + ': ' + f));
      app.bad.push(...one.bad.map((f) => name + ': ' + f));
    }
  }
};

async function names(path, limit) {
  return (await api.children(path, {limit, stat: false})).children.map((c) => c.name);
}

// orNone returns what was read, or none if the znode does not exist. What cannot be read is not taken for missing.
function orNone(reading, none) {
  return reading.catch((error) => {
    if (!error.missing) {
      throw error;
    }
    return none;
  });
}

/** Reader reads below the root of an application, no more than it may. */
class Reader {
  constructor(base) {
    this.base = base;
    this.left = maxRead;
  }

  path(...parts) {
    return parts.reduce(join, this.base);
  }

  async names(...parts) {
    return this.left-- > 0 ? orNone(names(this.path(...parts), 1000), []) : [];
  }

  /** size returns the number of children, of any number. */
  async size(...parts) {
    const page = this.left-- > 0 ? await orNone(api.children(this.path(...parts), {limit: 1, stat: false}), null) : null;
    return page?.stat.numChildren ?? 0;
  }

  async text(...parts) {
    const z = this.left-- > 0 ? await orNone(api.znode(this.path(...parts)), null) : null;
    return z?.data ? new TextDecoder().decode(z.data) : '';
  }

  async json(...parts) {
    const text = await this.text(...parts);
    try {
      return JSON.parse(text);
    } catch (error) {
      return null;
    }
  }
}

/** many writes a number of things. */
export const many = (n, one, more = one + 's') => count(n) + ' ' + (n === 1 ? one : more);

// The kinds of applications. signs are children of the root of each; holder is a directory at the root
// that has several by default.
const kinds = [
  {name: 'Kafka', signs: ['brokers', 'controller_epoch'], async read(z, app) {
    const [brokers, topics, controller] = await Promise.all([z.size('brokers', 'ids'), z.names('brokers', 'topics'), z.json('controller')]);
    app.facts.push(many(brokers, 'broker'), many(topics.length, 'topic'));
    (controller ? app.facts : app.bad).push(controller ? 'controller is broker ' + controller.brokerid : 'no controller');
    let [leaderless, partitions, looked] = [0, 0, 0];
    for (const topic of topics) {
      const ids = await z.names('brokers', 'topics', topic, 'partitions');
      if (ids.length > z.left) {
        break;
      }
      const states = await Promise.all(ids.map((id) => z.json('brokers', 'topics', topic, 'partitions', id, 'state')));
      looked++;
      partitions += ids.length;
      leaderless += states.filter((s) => s && s.leader < 0).length;
    }
    const of = looked < topics.length ? ' (of the first ' + many(looked, 'topic') + ')' : '';
    if (leaderless) {
      app.bad.push(many(leaderless, 'partition') + ' without leader' + of);
    } else if (partitions) {
      app.facts.push('all ' + many(partitions, 'partition') + ' have a leader' + of);
    }
  }},
  {name: 'Solr', signs: ['live_nodes', 'collections'], async read(z, app) {
    const [live, collections, overseer] = await Promise.all([z.size('live_nodes'), z.size('collections'), z.json('overseer_elect', 'leader')]);
    (live ? app.facts : app.bad).push(live ? many(live, 'live node') : 'no live node');
    app.facts.push(many(collections, 'collection'));
    (overseer || !live ? app.facts : app.bad).push(overseer ? 'overseer is ' + String(overseer.id).replace(/^\d+-|-n_\d+$/g, '') : 'no overseer');
  }},
  {name: 'ClickHouse', signs: ['tables', 'task_queue'], read: clickHouse},
  {name: 'HBase', signs: ['hbaseid', 'rs'], async read(z, app) {
    const [servers, masters, backups] = await Promise.all([z.size('rs'), z.text('master'), z.size('backup-masters')]);
    (masters ? app.facts : app.bad).push(masters ? 'a master' + (backups ? ' and ' + many(backups, 'backup') : '') : 'no master');
    (servers ? app.facts : app.bad).push(many(servers, 'region server'));
  }},
  {name: 'Helix', signs: ['IDEALSTATES', 'LIVEINSTANCES'], async read(z, app) {
    const [live, all, resources, controller] = await Promise.all([z.size('LIVEINSTANCES'), z.size('INSTANCES'), z.size('IDEALSTATES'), z.text('CONTROLLER', 'LEADER')]);
    (live < all ? app.bad : app.facts).push(count(live) + ' of ' + many(all, 'instance') + ' live');
    app.facts.push(many(resources, 'resource'));
    if (!controller) {
      app.bad.push('no controller');
    }
  }},
  {name: 'Hadoop HA', signs: ['ActiveBreadCrumb'], holder: '/hadoop-ha', async read(z, app) {
    const active = await z.text('ActiveStandbyElectorLock');
    (active ? app.facts : app.bad).push(active ? 'a name node is active' : 'no active name node');
  }},
  {name: 'Patroni', signs: ['members', 'initialize'], holder: '/service', async read(z, app) {
    const [leader, members] = await Promise.all([z.text('leader'), z.names('members')]);
    (leader ? app.facts : app.bad).push(leader ? 'leader is ' + leader : 'no leader');
    app.facts.push(many(members.length, 'member'));
  }},
  {name: 'Services', signs: [], async read(z, app) {
    if (!/\/(services|discovery)$/.test(z.base)) {
      return;
    }
    let [instances, disabled, services] = [0, 0, 0];
    for (const service of (await z.names()).slice(0, 20)) {
      const ids = await z.names(service);
      const read = (await Promise.all(ids.slice(0, Math.max(0, z.left)).map((id) => z.json(service, id)))).filter((i) => i && (i.serviceType || i.address));
      if (read.length > 0) {
        services++;
        instances += ids.length;
        disabled += read.filter((i) => i.enabled === false).length;
      }
    }
    if (services) {
      app.facts.push(many(services, 'service'), many(instances, 'instance') + (disabled ? ', ' + count(disabled) + ' disabled' : ''));
    }
  }},
];

// Replicas stand at .../replicas/NAME, with is_active while they may write.
async function clickHouse(z, app) {
  let [replicas, active] = [0, 0];
  const walk = async (path, depth) => {
    const inside = await z.names(...path);
    if (inside.includes('replicas') && inside.includes('metadata')) {
      const all = await z.names(...path, 'replicas');
      const each = await Promise.all(all.map((name) => z.names(...path, 'replicas', name)));
      replicas += all.length;
      active += each.filter((names) => names.includes('is_active')).length;
    } else if (depth < 4) {
      for (const name of inside.slice(0, 10)) {
        await walk([...path, name], depth + 1);
      }
    }
  };
  await walk(['tables'], 0);
  if (replicas) {
    app.facts.push(many(replicas, 'replica') + (z.left <= 0 ? ' seen' : ''));
    (active < replicas ? app.bad : app.facts).push(active < replicas ? many(replicas - active, 'replica') + ' read-only' : 'all writable');
  } else {
    app.facts.push('no replicated tables');
  }
}

// Applications are recognized by their znodes, and what matters of each.
import * as api from './api.js';
import {bytes, count, join} from './format.js';

const maxBases = 40; // directories that may be the root of an application
const maxRead = 60; // znodes that one application may have read

/**
 * findApps looks for applications at the root and one level below it: [{name, path, facts}]. A fact is
 * {text, path, wrong}: a short text, the znode that tells it, and whether somebody should look at it.
 */
export async function findApps() {
  const top = await names('/', 1000).catch(() => []);
  const bases = ['/', ...top.filter((name) => name !== 'zookeeper').slice(0, maxBases).map((name) => join('/', name))];
  const found = await Promise.all(bases.map(async (path) => {
    const here = path === '/' ? top : await names(path, 1000).catch(() => []);
    return Promise.all([...kinds.filter((kind) => kind.signs.every((sign) => here.includes(sign))).map((kind) => describe(kind, path, here)),
      ...kinds.filter((kind) => kind.holder === path).map((kind) => describe({name: kind.name, read: each(kind)}, path, here)),
      ...here.filter((name) => name === 'services' || name === 'discovery').map((name) => describe({name: 'Services', read: services}, join(path, name)))]);
  }));
  return found.flat().filter(Boolean);
}

async function describe(kind, path, here) {
  const app = {name: kind.name, path, facts: []};
  try {
    await kind.read(new Reader(path, app.facts), here);
  } catch (error) {
    app.facts.push({text: 'not all of it is readable', path, wrong: false});
  }
  app.facts.sort((a, b) => b.wrong - a.wrong);
  return app.facts.length ? app : null;
}

// each reads the applications of a kind that are in its holder.
const each = (kind) => async (z, here) => {
  for (const name of here.slice(0, 10)) {
    const inside = await z.names(name);
    if (kind.signs.every((sign) => inside.includes(sign))) {
      await kind.read(new Reader(z.path(name), z.facts, name + ': '), inside);
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

/** Reader reads below the root of an application, no more than it may, and notes facts. */
class Reader {
  constructor(root, facts, prefix = '') {
    Object.assign(this, {root, facts, prefix, left: maxRead});
  }

  /** says notes a fact, which the znode below parts tells. */
  says(text, ...parts) {
    this.facts.push({text: this.prefix + text, path: this.path(...parts), wrong: false});
  }

  /** warns notes one that somebody should look at. */
  warns(text, ...parts) {
    this.facts.push({text: this.prefix + text, path: this.path(...parts), wrong: true});
  }

  path(...parts) {
    return parts.reduce(join, this.root);
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
  {name: 'Kafka', signs: ['brokers', 'controller_epoch'], async read(z) {
    const [brokers, topics, controller] = await Promise.all([z.size('brokers', 'ids'), z.names('brokers', 'topics'), z.json('controller')]);
    z.says(many(brokers, 'broker'), 'brokers', 'ids');
    z.says(many(topics.length, 'topic'), 'brokers', 'topics');
    if (controller) {
      z.says('controller is broker ' + controller.brokerid, 'controller');
    } else {
      z.warns('no controller');
    }
    let [partitions, looked] = [0, 0];
    const leaderless = [];
    for (const topic of topics) {
      const at = ['brokers', 'topics', topic, 'partitions'];
      const ids = await z.names(...at);
      if (ids.length > z.left) {
        break;
      }
      const states = await Promise.all(ids.map((id) => z.json(...at, id, 'state')));
      looked++;
      partitions += ids.length;
      leaderless.push(...ids.filter((id, i) => states[i]?.leader < 0).map((id) => [...at, id, 'state']));
    }
    const of = looked < topics.length ? ' (of the first ' + many(looked, 'topic') + ')' : '';
    if (leaderless.length) {
      z.warns(many(leaderless.length, 'partition') + ' without leader' + of, ...leaderless[0]);
    } else if (partitions) {
      z.says('all ' + many(partitions, 'partition') + ' have a leader' + of, 'brokers', 'topics');
    }
  }},
  {name: 'Solr', signs: ['live_nodes', 'collections'], async read(z) {
    const [live, collections, overseer] = await Promise.all([z.size('live_nodes'), z.size('collections'), z.json('overseer_elect', 'leader')]);
    if (live) {
      z.says(many(live, 'live node'), 'live_nodes');
    } else {
      z.warns('no live node', 'live_nodes');
    }
    z.says(many(collections, 'collection'), 'collections');
    if (overseer) {
      z.says('overseer is ' + String(overseer.id).replace(/^\d+-|-n_\d+$/g, ''), 'overseer_elect', 'leader');
    } else if (live) {
      z.warns('no overseer');
    } else {
      z.says('no overseer');
    }
  }},
  {name: 'ClickHouse', signs: ['tables', 'task_queue'], read: clickHouse},
  {name: 'HBase', signs: ['hbaseid', 'rs'], async read(z) {
    const [servers, masters, backups] = await Promise.all([z.size('rs'), z.text('master'), z.size('backup-masters')]);
    if (masters) {
      z.says('a master' + (backups ? ' and ' + many(backups, 'backup') : ''), 'master');
    } else {
      z.warns('no master');
    }
    z[servers ? 'says' : 'warns'](many(servers, 'region server'), 'rs');
  }},
  {name: 'Helix', signs: ['IDEALSTATES', 'LIVEINSTANCES'], async read(z) {
    const [live, all, resources, controller] = await Promise.all([z.size('LIVEINSTANCES'), z.size('INSTANCES'), z.size('IDEALSTATES'), z.text('CONTROLLER', 'LEADER')]);
    z[live < all ? 'warns' : 'says'](count(live) + ' of ' + many(all, 'instance') + ' live', 'LIVEINSTANCES');
    z.says(many(resources, 'resource'), 'IDEALSTATES');
    if (!controller) {
      z.warns('no controller', 'CONTROLLER');
    }
  }},
  {name: 'Hadoop HA', signs: ['ActiveBreadCrumb'], holder: '/hadoop-ha', async read(z) {
    if (await z.text('ActiveStandbyElectorLock')) {
      z.says('a name node is active', 'ActiveStandbyElectorLock');
    } else {
      z.warns('no active name node');
    }
  }},
  {name: 'Patroni', signs: ['members', 'initialize'], holder: '/service', read: patroni},
];

// Members write where their log is, and the leader where its own is: both are positions in bytes.
async function patroni(z) {
  const [leader, names, status] = await Promise.all([z.text('leader'), z.names('members'), z.json('status')]);
  if (leader) {
    z.says('leader is ' + leader, 'leader');
  } else {
    z.warns('no leader');
  }
  z.says(many(names.length, 'member'), 'members');
  const members = await Promise.all(names.filter((name) => name !== leader).map((name) => z.json('members', name)));
  const lags = members.filter((m) => m?.xlog_location && status?.optime).map((m) => Math.max(0, status.optime - m.xlog_location));
  if (lags.length) {
    z.says('lag ' + bytes(Math.max(...lags)), 'status');
  }
}

// Curator's discovery has BASE/SERVICE/INSTANCE; BASE is called services or discovery, or is one below.
async function services(z) {
  const read = async (parts, deeper) => {
    let [instances, disabled, found] = [0, 0, 0];
    for (const name of (await z.names(...parts)).slice(0, 20)) {
      const ids = await z.names(...parts, name);
      const each = await Promise.all(ids.slice(0, Math.max(0, z.left)).map((id) => z.json(...parts, name, id)));
      const known = each.filter((i) => i && (i.serviceType || i.address));
      if (known.length > 0) {
        found++;
        instances += ids.length;
        disabled += known.filter((i) => i.enabled === false).length;
      } else if (deeper) {
        await read([...parts, name], false);
      }
    }
    if (found) {
      z.says(many(found, 'service') + (z.left <= 0 ? ' seen' : ''), ...parts);
      z.says(many(instances, 'instance') + (disabled ? ', ' + count(disabled) + ' disabled' : ''), ...parts);
    }
  };
  await read([], true);
}

// Replicas stand at .../replicas/NAME, with is_active while they may write.
async function clickHouse(z) {
  let replicas = 0;
  const idle = [];
  const walk = async (path, depth) => {
    const inside = await z.names(...path);
    if (inside.includes('replicas') && inside.includes('metadata')) {
      const all = await z.names(...path, 'replicas');
      const each = await Promise.all(all.map((name) => z.names(...path, 'replicas', name)));
      replicas += all.length;
      idle.push(...all.filter((name, i) => !each[i].includes('is_active')).map((name) => [...path, 'replicas', name]));
    } else if (depth < 4) {
      for (const name of inside.slice(0, 10)) {
        await walk([...path, name], depth + 1);
      }
    }
  };
  await walk(['tables'], 0);
  if (!replicas) {
    z.says('no replicated tables', 'tables');
    return;
  }
  z.says(many(replicas, 'replica') + (z.left <= 0 ? ' seen' : ''), 'tables');
  if (idle.length) {
    z.warns(many(idle.length, 'replica') + ' read-only', ...idle[0]);
  } else {
    z.says('all writable', 'tables');
  }
}

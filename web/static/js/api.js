// Requests to the server. Addresses are relative to the page, so that a program may mount the handler
// below a prefix.
import {decodePath, encodePath} from './format.js';

const root = new URL('..', document.baseURI);
root.username = root.password = ''; // of user:password@host: a browser sends them by itself, and refuses to fetch from an address with them

/** ApiError is an answer of application/problem+json, or a failure to get any answer (status 0). */
export class ApiError extends Error {
  constructor(status, body, path) {
    super(codes[body.code]?.(body.path || path) || body.detail || body.title || 'HTTP status ' + status);
    this.name = 'ApiError';
    this.status = status;
    this.title = body.title || (status === 0 ? 'No connection to the server' : 'HTTP status ' + status);
    this.code = body.code || 0; // ZooKeeper's, for example -101
    this.path = body.path || path;
    this.body = body;
    this.remedy = remedies[status] || '';
  }
  get missing() {
    return this.status === 404;
  }
  get forbidden() {
    return this.status === 403;
  }
  /** offer is what the shell offers to a person who may not do something. */
  get offer() {
    return this.forbidden ? hooks.refused() : [];
  }
  get conflict() {
    return this.status === 412 || this.code === -103;
  }
}

// What ZooKeeper's commonest codes mean for a person.
const codes = {
  '-101': (path) => 'The znode ' + path + ' does not exist.',
  '-102': (path) => 'The ACL of ' + path + ', or of its parent, does not let you do this.',
  '-103': (path) => 'Somebody else changed ' + path + ' in the meantime.',
  '-108': () => 'An ephemeral znode cannot have children.',
  '-110': (path) => 'The znode ' + path + ' exists already.',
  '-111': (path) => 'The znode ' + path + ' has children.',
  '-125': (path) => 'The quota above ' + path + ' is used up.',
};

const remedies = {
  0: 'The explorer reconnects by itself as soon as the server answers.',
  401: 'Log in with an identity that has a role: gozkd.web.roles lists them.',
  403: 'Log in as another identity, or ask for the role or the permission in the ACL.',
  429: 'Too many requests at once. Wait a few seconds and try again.',
  501: 'This server is not configured for it.',
  503: 'The page reads again by itself as soon as the server serves.',
};

/**
 * hooks of the shell: unauthorised() is asked for a login after a 401 and resolves to true if the
 * request is to be repeated; reached(ok) hears whether the server answered; refused() says who the
 * person is and offers a login, in elements.
 */
export const hooks = {unauthorised: async () => false, reached: () => {}, refused: () => []};

/** url builds an address from a path below the mount point and a query; null values are left out. */
export function url(path, query) {
  const address = new URL(path.replace(/^\//, ''), root);
  for (const [name, value] of Object.entries(query || {})) {
    if (value === true) {
      address.searchParams.append(name, '');
    } else if (value !== null && value !== undefined && value !== false) {
      address.searchParams.append(name, value);
    }
  }
  return address;
}

/** request sends one request and returns the response, or throws an ApiError. */
export async function request(method, path, {query, headers, body, signal, quiet} = {}) {
  let response;
  try {
    response = await fetch(url(path, query), {
      method, body, signal, credentials: 'same-origin', cache: 'no-store',
      headers: {...headers, 'Gozkd-Page': '1'}, // what the page reads is not among the hot paths
    });
  } catch (error) {
    if (error.name === 'AbortError') {
      throw error;
    }
    hooks.reached(false);
    throw new ApiError(0, {detail: 'The server does not answer: ' + error.message}, path);
  }
  hooks.reached(true);
  if (response.ok) {
    return response;
  }
  let problem = {};
  try {
    problem = await response.json();
  } catch (error) {
    // An answer of a proxy: the status has to do.
  }
  if (response.status === 401 && !quiet && await hooks.unauthorised()) {
    return request(method, path, {query, headers, body, signal, quiet: true});
  }
  throw new ApiError(response.status, problem, decodePath(path.replace(/^znodes\/v2/, '')));
}

async function json(method, path, options) {
  const response = await request(method, path, options);
  return response.status === 204 ? null : response.json();
}

/** get asks for JSON below /ui/api/: get('sessions', {limit: 100}). */
export function get(name, query, options) {
  return json('GET', 'ui/api/' + name, {query, ...options});
}

/** post sends JSON below /ui/api/. */
export function post(name, body, query, options) {
  return json('POST', 'ui/api/' + name,
    {query, body: JSON.stringify(body || {}), headers: {'Content-Type': 'application/json'}, ...options});
}

/** identity returns the ids, the role and the server. */
export function identity(signal) {
  return json('GET', 'identity/v2', {quiet: true, signal});
}

function znodes(path) {
  return 'znodes/v2' + encodePath(path);
}

// Of which moment znodes are read: a time or a zxid that the archive has, null is now.
let moment = null;

/** setMoment chooses the moment of which znodes are read from now on; null is now. */
export function setMoment(at) {
  moment = at;
}

/** past returns the moment of which znodes are read, null for now. */
export function past() {
  return moment;
}

export const inlineLimit = 1 << 20;

/**
 * znode returns {path, stat, data, large}: data is a Uint8Array, or null if the znode has more than
 * 1 MiB (large is then true).
 */
export async function znode(path, options) {
  const response = await request('GET', znodes(path), {query: {at: moment}, headers: {Accept: 'application/json'}, ...options});
  const text = await readText(response, 1.4 * inlineLimit + 2000); // base64, and the Stat
  if (text === null) {
    return {path, large: true, data: null, stat: null};
  }
  const body = JSON.parse(text);
  return {...body, large: false, data: fromBase64(body.data || '')};
}

// readText returns the body of a response, or null if it has more than limit bytes.
async function readText(response, limit) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let length = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) {
      return text + decoder.decode();
    }
    length += value.length;
    if (length > limit) {
      reader.cancel();
      return null;
    }
    text += decoder.decode(value, {stream: true});
  }
}

/** data returns the data alone, of any size. */
export async function data(path) {
  const response = await request('GET', znodes(path), {query: {at: moment}, headers: {Accept: 'application/octet-stream'}});
  return new Uint8Array(await response.arrayBuffer());
}

/** children returns {path, stat, children: [{name, stat}], next}. */
export function children(path, {after, skip, prefix, limit = 200, stat = true, signal} = {}) {
  return json('GET', znodes(path), {query: {children: true, after, skip: skip || null, prefix, limit, stat: stat && !moment, at: moment}, signal});
}

/** acl returns {acl: [{scheme, id, perms}], stat}. */
export function acl(path) {
  return json('GET', znodes(path), {query: {acl: true, at: moment}});
}

/** at returns a znode as it was at a moment, {stat, data, zxid}, with other fields if query asks for them. */
export function at(path, moment, query, signal) {
  return json('GET', znodes(path), {query: {...query, at: moment}, signal});
}

/** exists returns true if the znode exists. */
export async function exists(path) {
  try {
    await request('HEAD', znodes(path));
    return true;
  } catch (error) {
    if (error.missing) {
      return false;
    }
    throw error;
  }
}

/** setData replaces the data if the znode still has the version. */
export function setData(path, data, version) {
  return json('PUT', znodes(path), {body: data, headers: {'If-Match': '"' + version + '"', 'Content-Type': 'application/octet-stream'}});
}

/** setACL replaces the ACL if the znode still has the version of its ACL. */
export function setACL(path, list, aversion) {
  return json('PUT', znodes(path), {
    query: {acl: true}, body: JSON.stringify({acl: list}),
    headers: {'If-Match': '"' + aversion + '"', 'Content-Type': 'application/json'},
  });
}

/** create makes a child; query has name, mode, sequential, ttl. It returns {path, stat}. */
export function create(parent, data, query) {
  return json('POST', znodes(parent), {query, body: data, headers: {'Content-Type': 'application/octet-stream'}});
}

/** remove deletes a znode if it still has the version. */
export function remove(path, version) {
  return json('DELETE', znodes(path), {headers: {'If-Match': '"' + version + '"'}});
}

/**
 * stream opens server-sent events. handlers has one function per event name, which gets the data
 * (parsed JSON) and the id, and optionally open() and lost(givenUp). The browser reconnects by itself
 * and sends Last-Event-ID, unless it has given up: the next open() is that of a new stream, before
 * which events may be missed. Returns a function that closes the stream.
 */
export function stream(path, query, handlers) {
  let source = null;
  let timer = 0;
  let wait = 1000;
  const connect = () => {
    source = new EventSource(url(path, query));
    source.onopen = () => {
      wait = 1000;
      handlers.open?.();
    };
    source.onerror = () => {
      handlers.lost?.(source.readyState === EventSource.CLOSED);
      identity().catch(() => null); // tells the shell whether the server answers at all
      if (source.readyState === EventSource.CLOSED) {
        // The browser gives up after a status other than 200: during a restart, for example.
        timer = setTimeout(connect, wait);
        wait = Math.min(2 * wait, 30000);
      }
    };
    for (const name of Object.keys(handlers)) {
      if (name !== 'open' && name !== 'lost') {
        source.addEventListener(name, (event) => handlers[name](event.data ? JSON.parse(event.data) : {}, event.lastEventId));
      }
    }
  };
  connect();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

/** parts calls a handler for each server-sent event of a response until its end. */
export async function parts(response, handlers) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) {
      break;
    }
    text += value;
    const events = text.split('\n\n');
    text = events.pop();
    for (const event of events) {
      const [, name, data] = event.match(/^event: (.*)\ndata: (.*)$/s) || [];
      handlers[name]?.(JSON.parse(data));
    }
  }
}

/** events follows a znode, or its whole subtree: handlers created, changed, deleted, children, reset. */
export function events(path, recursive, handlers) {
  return stream(znodes(path), {watch: recursive ? 'recursive' : true}, handlers);
}

/** fromBase64 decodes to bytes. */
export function fromBase64(text) {
  if (Uint8Array.fromBase64) {
    return Uint8Array.fromBase64(text);
  }
  const raw = atob(text);
  const data = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) {
    data[i] = raw.charCodeAt(i);
  }
  return data;
}

/** toBase64 encodes bytes. */
export function toBase64(data) {
  let raw = '';
  for (let i = 0; i < data.length; i += 8192) {
    raw += String.fromCharCode(...data.subarray(i, i + 8192));
  }
  return btoa(raw);
}

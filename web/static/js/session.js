// A session for ephemeral znodes that a person creates. It ends with the page, or the login.
import * as api from './api.js';

const expireSeconds = 180; // browsers run the timers of a hidden page once a minute
const heartbeatMs = 20_000;

let opened = null; // a promise of the session's id
let live = null; // {path, timer} of the session

/** ownSession returns the id of the page's session and opens it at the first call. */
export function ownSession() {
  opened ||= open().catch((error) => {
    opened = null;
    throw error;
  });
  return opened;
}

async function open() {
  const response = await api.request('POST', 'sessions/v1/', {query: {op: 'create', expire: expireSeconds}});
  const {id} = await response.json();
  const mine = {path: 'sessions/v1/' + id};
  mine.timer = setInterval(async () => {
    try {
      await api.request('PUT', mine.path, {quiet: true});
    } catch (error) {
      if (error.missing || error.forbidden || error.status === 401) {
        forget(mine);
      }
    }
  }, heartbeatMs);
  live = mine;
  return id;
}

function forget(session) {
  clearInterval(session.timer);
  if (live === session) {
    live = opened = null;
  }
}

/** endSession ends the session, and with it the znodes. */
export async function endSession() {
  const was = live;
  if (was) {
    forget(was);
    await fetch(api.url(was.path), {method: 'DELETE', keepalive: true}).catch(() => null);
  }
}

addEventListener('pagehide', endSession);

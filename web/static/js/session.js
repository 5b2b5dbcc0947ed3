// A session for ephemeral znodes that a person creates. It ends with the page.
import * as api from './api.js';

const expireSeconds = 30;

let opened = null; // a promise of the session's id

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
  const path = 'sessions/v1/' + id;
  const timer = setInterval(async () => {
    try {
      await api.request('PUT', path);
    } catch (error) {
      if (error.missing) {
        clearInterval(timer);
        opened = null;
      }
    }
  }, expireSeconds * 300);
  addEventListener('pagehide', () => fetch(api.url(path), {method: 'DELETE', keepalive: true}).catch(() => null));
  return id;
}

// The line below the tabs: how the ensemble is, on every page, and the banner without a quorum.
import * as api from './api.js';
import {badge, h, icon, replace} from './dom.js';
import {count} from './format.js';

const every = 3000;
const patience = 5000; // a server that takes longer to answer counts as lost

let reason = ''; // why nothing can be changed
let last = null; // {zxid, at}: the newest change, and when it was first seen
let changedAt = 0; // when a change was last seen to happen, by this page or before by the server

let asked = null; // {at, answer: a promise}

/** ensemble returns what the server last said about the ensemble, at most this line's interval ago. */
export function ensemble() {
  if (!asked || Date.now() - asked.at > every - 100) {
    asked = {at: Date.now(), answer: api.get('ensemble', {brief: true}, {quiet: true, signal: AbortSignal.timeout(patience)})};
    asked.answer.catch(() => {
      asked = null;
    });
  }
  return asked.answer;
}

/** barred returns why nobody can change anything, or ''. */
export function barred() {
  return reason;
}

/** quorumLost reports whether a server of several, which gave the answer e about the ensemble, knows no leader. */
export function quorumLost(e) {
  return e.mode !== 'standalone' && e.values.gozkd_quorum_reachable === 0;
}

/**
 * watchHealth keeps the line up to date while the page is visible and the person is allowed to see the
 * ensemble. Without a quorum a banner says so. changed(mode) runs when the mode of the server changes,
 * and when the quorum is lost or back.
 */
export function watchHealth(line, banner, allowed, changed) {
  let mode = null;
  const draw = (e) => {
    const rate = changes(e.zxid);
    changedAt ||= e.lastChange || 0;
    const lost = quorumLost(e);
    const voters = e.members.filter((m) => m.role !== 'observer').length;
    const reached = e.values.gozkd_voters_connected;
    const at = changedAt ? 'last change ' + new Date(changedAt).toLocaleTimeString('en-GB') : '';
    reason = lost ? 'No quorum: nothing can be changed' : '';
    banner.hidden = !lost;
    if (lost) {
      replace(banner, icon('warn'), h('span', null, 'No quorum: this server reaches ' + reached + ' of ' + voters + ' members', at && h('span', {class: 'hide-small'}, ', ' + at),
        '. Nothing can be changed', h('span', {class: 'hide-small'}, ', and what you see may be out of date'), '.'));
    }
    replace(line, h('span', {class: 'dot ' + (lost ? 'bad' : well(e, reached, voters) ? 'good' : 'warn')}), h('a', {href: '#/ensemble'}, members(e, lost, reached, voters)),
      !lost && h('span', null, rate === null ? '' : count(rate) + (rate === 1 ? ' change' : ' changes') + ' per second'), h('span', {class: 'dim'}, at),
      e.dataStatus && badge('data near or at their limit', 'bad', e.dataStatus));
    if (mode !== e.mode + lost) {
      mode = e.mode + lost;
      dispatchEvent(new Event('health'));
      changed(lost ? 'no quorum' : e.mode);
    }
  };
  const ask = async () => {
    try {
      if (!allowed()) {
        [reason, mode, banner.hidden] = ['', null, true];
      } else if (!document.hidden) {
        draw(await ensemble());
      }
      line.hidden = !allowed();
    } catch (error) {
      line.hidden = true; // the shell says that the server does not answer, or asks for a login
    }
    setTimeout(ask, every);
  };
  document.addEventListener('visibilitychange', () => {
    last = null; // the rate while the page was hidden says little
  });
  return ask();
}

// changes notes the newest change, and returns how many there were per second since the last answer.
function changes(zxid) {
  const now = {zxid, at: Date.now()};
  const before = last;
  last = now;
  if (!before) {
    return null;
  }
  if (before.zxid !== zxid) {
    changedAt = now.at;
  }
  const n = Number(BigInt(zxid) - BigInt(before.zxid));
  return n < 0 || n >= 2 ** 32 ? null : Math.round(1000 * n / Math.max(1, now.at - before.at)); // another epoch
}

function well(e, reached, voters) {
  return e.mode === 'standalone' || (reached === voters && e.members.every((m) => m.inStep !== false));
}

function members(e, lost, reached, voters) {
  if (e.mode === 'standalone') {
    return h('span', null, 'standalone server');
  }
  const behind = e.members.filter((m) => m.inStep === false).length;
  const lag = Math.max(0, ...e.members.map((m) => m.lagEntries || 0));
  return [h('span', null, reached + ' of ' + voters + ' voting members connected'), !lost && h('span', null, 'leader is server ' + e.leader),
    behind > 0 && h('span', {class: 'warn'}, behind + ' not in sync'), lag > 50 && h('span', {class: 'warn'}, 'up to ' + count(lag) + ' entries behind')];
}

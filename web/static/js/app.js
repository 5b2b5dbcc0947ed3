// The shell: routes, tabs, the banner of a lost connection, the keyboard, the identity.
//
// views/NAME.js is the view at the address #/NAME?query; #/z/PATH shows a znode. Its default export gets
// a context, see context(), and returns what to show. Only title and element are required:
//
//   export default function (ctx) {
//     const element = h('div', {class: 'page'}, h('h1', null, 'Sessions'), …);
//     return {title: 'Sessions', element, close() {}, refresh() {}, update(ctx) {}, keys: {r: () => …}};
//   }
//
// refresh runs when the server answers again, update when the address changes within the view (without
// it the view is opened anew). ctx.setParams({filter}) keeps the state of a view in its address.
import * as api from './api.js';
import {confirm, dialog, toast} from './dialog.js';
import {badge, button, h, icon, loading, problem, remember, replace, setting} from './dom.js';
import {decodePath, tickTimes, znodeHref} from './format.js';
import {barred, watchHealth} from './health.js';
import {jumpBox} from './jump.js';
import {loginForm, loginDialog} from './login.js';
import {endSession} from './session.js';

// Those that people need at once are tabs. The others, which have a hint, are in a menu beside them.
const tabs = [
  ['overview', 'Overview'], ['z', 'Znodes'], ['sessions', 'Sessions'], ['locks', 'Locks'], ['ensemble', 'Ensemble'],
  ['activity', 'Activity', 'rates, latencies, hot paths'], ['watches', 'Watches', 'who watches what'],
  ['search', 'Search', 'names and contents of a subtree'], ['compare', 'Compare', 'two subtrees or ensembles'],
  ['history', 'History', 'earlier versions and who made them'], ['transfer', 'Import & export', 'a subtree as a file'],
];
const menu = h('div', {id: 'more', class: 'menu', popover: true, onbeforetoggle: () => {
  const below = more.getBoundingClientRect();
  menu.style.top = below.bottom + 'px';
  menu.style.left = Math.min(below.left, innerWidth - 288) + 'px';
}});
const more = h('button', {type: 'button', popovertarget: 'more'});

const roles = ['none', 'read', 'write', 'admin'];

const view = document.getElementById('view');
let identity = {ids: [], role: 'none', server: {}};
let current = null; // {name, path, view}
let lastPath = setting('path', '/');
let jump = null;
let visit = 0; // counts calls of route, so that a slow import does not replace a later view

/** parseHash splits #/z/a/b?x=1 or #/sessions?x=1 into {name, path, params}. */
export function parseHash(hash) {
  const [address, query] = split(hash.replace(/^#\/?/, ''), '?');
  const [name, rest] = split(address, '/');
  return {name: name || 'z', path: '/' + decodePath(rest.replace(/\/$/, '')), params: new URLSearchParams(query)};
}

function split(text, separator) {
  const i = text.indexOf(separator);
  return i < 0 ? [text, ''] : [text.slice(0, i), text.slice(i + 1)];
}

/** go opens an address: '#/z/a', '#/sessions?filter=x'. */
function go(hash) {
  if (location.hash === hash) {
    route();
  } else {
    location.hash = hash;
  }
}

/** setParams changes the query of the address without opening the view again. */
function setParams(changes) {
  const {name, path, params} = parseHash(location.hash);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === '') {
      params.delete(key);
    } else {
      params.set(key, value);
    }
  }
  const query = params.toString();
  const address = name === 'z' ? znodeHref(path) : '#/' + name;
  history.replaceState(null, '', address + (query ? '?' + query : ''));
}

/** may reports whether the identity has the role, or a higher one. */
function may(role) {
  return roles.indexOf(identity.role) >= roles.indexOf(role);
}

/** mayNot returns why the person may not change what needs the role, or ''; missing says it of the role. */
function mayNot(role, missing) {
  return barred() || (may(role) ? '' : missing);
}

function context(at) {
  return {api, params: at.params, path: at.path, go, setParams, role: identity.role, identity, may, mayNot, dialog, confirm, toast};
}

async function route() {
  const at = parseHash(location.hash);
  const mine = ++visit;
  if (at.name === 'z') {
    lastPath = at.path;
  }
  markTab(at.name);
  if (current && current.name === at.name && current.view.update) {
    current.view.update(context(at));
    document.title = title(current.view);
    return;
  }
  close();
  if (!may('read')) {
    showLogin();
    return;
  }
  replace(view, h('div', {class: 'page'}, loading(5)));
  let module;
  try {
    module = at.name === 'z' ? await import('./znodes.js') : await openModule(at.name);
  } catch (error) {
    if (mine === visit) {
      // A browser does not fetch a module again that it could not fetch: the page has to be loaded anew.
      const reload = () => location.reload();
      current = {name: '', view: {refresh: reload}};
      replace(view, h('div', {class: 'page'}, problem(error, reload)));
      api.identity().catch(() => null); // tells whether the server answers at all
    }
    return;
  }
  if (mine !== visit) {
    return;
  }
  const opened = module.default(context(at));
  current = {name: at.name, view: opened};
  replace(view, opened.element);
  view.dataset.view = at.name;
  document.title = title(opened);
}

async function openModule(name) {
  if (!tabs.some((t) => t[0] === name)) {
    throw Object.assign(new Error('The tabs above lead to the views that exist.'), {title: 'There is no view “' + name + '”'});
  }
  return import('../views/' + name + '.js');
}

function title(v) {
  return (v.title ? v.title + ' – ' : '') + 'gozkd';
}

function close() {
  current?.view.close?.();
  current = null;
}

function markTab(name) {
  const inMenu = tabs.find((t) => t[0] === name && t[2]);
  menu.hidePopover();
  replace(more, inMenu && innerWidth > 400 ? inMenu[1] : 'More', icon('chevron'));
  more.setAttribute('aria-label', inMenu ? inMenu[1] + ': more views' : 'More views'); // a view may have a button of its name
  for (const link of [more, ...document.querySelectorAll('#nav a')]) {
    if (link === more ? inMenu : link.dataset.tab === name) {
      link.setAttribute('aria-current', 'page');
      link.scrollIntoView({block: 'nearest', inline: 'nearest'});
    } else {
      link.removeAttribute('aria-current');
    }
    if (link.dataset.tab === 'z') {
      link.href = znodeHref(lastPath);
    }
  }
}

function showLogin() {
  close();
  replace(view, loginForm(identity, async (next) => {
    setIdentity(next);
    route();
  }));
  document.title = 'Log in – gozkd';
}

function setIdentity(next) {
  identity = next;
  const name = whoIs();
  const dark = document.documentElement.dataset.theme === 'dark';
  replace(document.getElementById('user'),
    identity.server?.version && h('span', {class: 'server dim hide-small', title: 'Server ' + identity.server.id + ', version ' + identity.server.version},
      'server ' + identity.server.id + ' · ' + identity.server.mode),
    identity.role !== 'none' && badge([identity.role === 'read' ? 'read-only' : identity.role, identity.anonymous && identity.role !== 'read' && [', open', h('span', {class: 'hide-medium'}, 'to everybody on this machine')]],
      identity.role === 'read' ? '' : identity.anonymous ? 'warn' : 'accent',
      identity.anonymous ? 'Your role, and that of everybody on this machine: nobody had to log in' : 'Your role. Logged in as ' + name),
    identity.anonymous || identity.role === 'none'
      ? button('Log in', login, {kind: 'quiet', iconName: 'user', title: 'Log in as another identity'})
      : button('Log out', logout, {kind: 'quiet', iconName: 'user', title: 'Logged in as ' + name}),
    button('', () => switchTheme(!dark), {kind: 'quiet', iconName: dark ? 'sun' : 'moon', title: dark ? 'Light colours' : 'Dark colours'}),
    button('', help, {kind: 'quiet', iconName: 'help', title: 'Keyboard and help'}));
}

// whoIs names the identities of the person.
function whoIs() {
  return identity.ids?.map((id) => id.scheme === 'world' ? 'anonymous' : id.scheme + ':' + shortId(id)).join(', ') || 'nobody';
}

function shortId(id) {
  return id.scheme === 'digest' ? id.id.split(':')[0] : id.id;
}

function switchTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  remember('theme', dark ? 'dark' : 'light');
  setIdentity(identity);
}

async function login() {
  const next = await loginDialog(identity);
  if (next) {
    endSession(); // it belongs to who the person was before
    setIdentity(next);
    close();
    route();
  }
  return Boolean(next);
}

async function logout() {
  identity = {...identity, role: 'none'}; // requests under way that are refused now do not ask for a login
  try {
    await endSession();
    await api.post('logout');
    setIdentity(await api.identity());
  } catch (error) {
    setIdentity({...identity, ids: [], role: 'none', anonymous: false});
  }
  close();
  route();
}

const keyHelp = [
  ['/', 'Jump to a path; Tab completes'], ['Ctrl-K', 'Jump to a view, a pinned or recent path, an action, or search'], ['j  k', 'Next, previous znode'], ['h  l  ← →', 'Fold, unfold'],
  ['Enter', 'Open'], ['u', 'Up to the parent'], ['e', 'Edit the data'], ['a', 'Edit the ACL'], ['n', 'New child'], ['d', 'Delete'],
  ['y', 'Copy the path'], ['p', 'Pin the path'], ['m', 'Copy or move the subtree'], ['f', 'Follow changes live'], ['r', 'Read again'], ['[  ]', 'Previous, next tab'], ['?', 'This help'], ['Esc', 'Close, cancel'],
];

function help() {
  dialog({
    title: 'Keyboard',
    body: [
      h('dl', {class: 'keys'}, keyHelp.map(([key, text]) => [h('dt', null, key.split('  ').map((k) => h('kbd', null, k))), h('dd', null, text)])),
      h('p', {class: 'dim'}, 'Every view and every znode has its own address: copy it to share what you see. ' +
        'The explorer uses the REST interface below ', h('code', null, '/znodes/v2/'), ', described by ',
      h('a', {href: api.url('openapi/v2.json')}, 'its OpenAPI file'), '.'),
    ],
  });
}

// actions are what the keys of the open view do, and what the buttons of the shell do.
function actions() {
  const dark = document.documentElement.dataset.theme === 'dark';
  const keys = keyHelp.filter(([key]) => /^[a-z]$/.test(key) && current?.view.keys?.[key]).map(([key, text]) => ({text, run: current.view.keys[key]}));
  return [...keys, {text: dark ? 'Light colours' : 'Dark colours', run: () => switchTheme(!dark)}, {text: 'Keyboard and help', run: help},
    identity.anonymous || identity.role === 'none' ? {text: 'Log in', run: login} : {text: 'Log out', run: logout}];
}

function onkey(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === 'k' && !document.querySelector('dialog[open]')) {
    event.preventDefault();
    jump.anything();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) {
    return;
  }
  if (event.target.closest?.('input, textarea, select')) {
    return;
  }
  const run = current?.view.keys?.[event.key] || shellKeys[event.key];
  if (run && run(event) !== false) {
    event.preventDefault();
  }
}

const shellKeys = {
  '/': () => document.querySelector('#jump input').focus(),
  '?': help,
  '[': () => step(-1),
  ']': () => step(1),
};

function step(by) {
  const names = tabs.map((t) => t[0]);
  const i = (names.indexOf(parseHash(location.hash).name) + by + names.length) % names.length;
  go(document.querySelector('#nav a[data-tab="' + names[i] + '"]').getAttribute('href'));
}

// While the server does not answer, the banner says so and the shell asks for the identity again.
let lost = false;

function reached(ok) {
  if (ok === !lost) {
    return;
  }
  lost = !ok;
  const banner = document.getElementById('banner');
  banner.hidden = ok;
  if (ok) {
    toast('The server answers again.', 'good');
    current?.view.refresh?.();
    return;
  }
  replace(banner, icon('warn'), 'The server does not answer. What you see may be out of date; trying again every 2 seconds.');
  const timer = setInterval(async () => {
    try {
      setIdentity(await api.identity(AbortSignal.timeout(2000)));
    } catch (error) {
      if (error.status === 0) {
        return;
      }
    }
    clearInterval(timer);
  }, 2000);
}

let asking = null;

async function start() {
  api.hooks.reached = reached;
  api.hooks.unauthorised = () => {
    if (!may('read')) {
      return false; // the page asks already
    }
    asking ||= login().finally(() => {
      asking = null;
    });
    return asking;
  };
  api.hooks.refused = () => [h('p', {class: 'dim'}, 'You are ' + whoIs() + '.'), button('Log in', login, {iconName: 'user', title: 'Log in as another identity'})];
  const links = (list) => list.map(([name, label, hint]) =>
    h('a', {href: name === 'z' ? znodeHref(lastPath) : '#/' + name, dataset: {tab: name}}, label, hint && h('span', {class: 'dim'}, hint)));
  replace(menu, links(tabs.filter((t) => t[2])));
  replace(document.getElementById('nav'), h('div', {class: 'tab-row'}, links(tabs.filter((t) => !t[2]))), more, menu);
  jump = jumpBox(document.getElementById('jump'), {go, current: () => lastPath, views: tabs, actions});
  try {
    setIdentity(await api.identity());
  } catch (error) {
    if (error.status !== 401 && error.status !== 403) {
      replace(view, h('div', {class: 'page'}, problem(error, () => location.reload())));
      return;
    }
    setIdentity({ids: [], role: 'none', reason: error.message, server: {}});
  }
  addEventListener('hashchange', route);
  addEventListener('keydown', onkey);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setIdentity(identity));
  setInterval(tickTimes, 5000);
  if (!location.hash) {
    history.replaceState(null, '', '#/overview');
  }
  watchHealth(document.getElementById('health'), document.getElementById('quorum'), () => may('read'), (mode) => {
    setIdentity({...identity, server: {...identity.server, mode}});
    current?.view.refresh?.();
  });
  await route();
  tabs.filter(([name]) => name !== 'z').forEach(([name]) => openModule(name).catch(() => null)); // views open even while the server is away
}

start();

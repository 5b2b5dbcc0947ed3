// The box that jumps to a path, completing names, or to a view, a recent path or a search.
import * as api from './api.js';
import {debounce, h, icon, remember, replace, setting} from './dom.js';
import {join, normal, znodeHref} from './format.js';

const maxRecent = 12;
const shownRecent = 4; // without a text, so that actions and views are in sight
const maxPinned = 50;

/** visited notes a path that a person opened. */
export function visited(path) {
  remember('recent', [path, ...setting('recent', []).filter((p) => p !== path)].slice(0, maxRecent));
}

/** pinned reports whether a person has pinned a path. */
export function pinned(path) {
  return setting('pinned', []).includes(path);
}

/** pin pins a path, or unpins it. Pinned paths are offered before all others. */
export function pin(path) {
  const others = setting('pinned', []).filter((p) => p !== path);
  remember('pinned', pinned(path) ? others : [path, ...others].slice(0, maxPinned));
}

/**
 * jumpBox fills the form. current() returns the path which is open, actions() what can be done there:
 * {text, run}; views are [name, label] of the tabs.
 */
export function jumpBox(form, {go, current, views, actions}) {
  let entries = []; // {text, hint, and hash or run}
  let chosen = -1;
  let asked = 0;
  let anything = false; // opened by Ctrl-K: begins without a path
  const list = h('ul', {class: 'completions', id: 'completions', role: 'listbox', 'aria-label': 'Znodes, views and actions', hidden: true});
  const input = h('input', {
    type: 'text', role: 'combobox', 'aria-label': 'Jump to a path', 'aria-controls': 'completions', 'aria-expanded': 'false',
    'aria-autocomplete': 'list', placeholder: 'Jump to a path or a view', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false',
  });
  const hide = () => {
    list.hidden = true;
    chosen = -1;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const draw = () => {
    replace(list, entries.map((entry, i) => h('li', {
      role: 'option', id: 'completion' + i, class: entry.text.startsWith('/') ? 'mono' : '', 'aria-selected': String(i === chosen),
      onmousedown: (e) => {
        e.preventDefault();
        open(entry);
      },
    }, entry.text, entry.hint && h('span', {class: 'dim'}, ' ' + entry.hint))));
    list.hidden = entries.length === 0;
    input.setAttribute('aria-expanded', String(!list.hidden));
    if (chosen >= 0) {
      input.setAttribute('aria-activedescendant', 'completion' + chosen);
      list.children[chosen].scrollIntoView({block: 'nearest'});
    } else {
      input.removeAttribute('aria-activedescendant');
    }
  };
  const open = ({hash, run}) => {
    hide();
    input.blur();
    if (run) {
      run();
    } else {
      go(hash);
    }
  };
  const toPath = (path) => ({text: path, hash: znodeHref(path)});
  const paths = async (text) => {
    const above = normal(text.slice(0, text.lastIndexOf('/')) || '/');
    const prefix = text.slice(text.lastIndexOf('/') + 1);
    try {
      const page = await api.children(above, {prefix: prefix || null, limit: 12, stat: false});
      return page.children.map((c) => toPath(join(above, c.name)));
    } catch (error) {
      return [];
    }
  };
  // Pinned and recent paths, actions and views. With a text: what begins with it, then what has a word that
  // does, then what has it anywhere; then the names of the root that begin so, and a search.
  const others = async (text) => {
    const wanted = text.toLowerCase();
    const rank = (name) => {
      const at = name.toLowerCase().indexOf(wanted);
      return at <= 0 || /[^a-z0-9]/i.test(name[at - 1]) ? Math.min(at, 1) : 2;
    };
    const pins = setting('pinned', []).map((path) => ({...toPath(path), hint: 'pinned'}));
    const recent = setting('recent', []).filter((path) => !pinned(path)).map((path) => ({...toPath(path), hint: 'recent'}));
    const todo = actions().map((action) => ({...action, hint: 'action'}));
    const places = views.map(([name, label]) => ({text: label, hint: 'view', hash: name === 'z' ? '#/z/' : '#/' + name}));
    if (!text) {
      return [...pins, ...recent.slice(0, shownRecent), ...todo, ...places];
    }
    return [
      ...[...places, ...todo, ...pins, ...recent].filter((entry) => rank(entry.text) >= 0).sort((x, y) => rank(x.text) - rank(y.text)),
      ...await paths('/' + text),
      {text: 'Search for names with “' + text + '”', hint: 'in all znodes', hash: '#/search?' + new URLSearchParams({root: '/', name: '*' + text + '*'})},
    ];
  };
  const complete = async () => {
    const mine = ++asked;
    const text = input.value;
    const found = text.startsWith('/') ? await paths(text) : await others(text);
    if (mine === asked && document.activeElement === input) {
      entries = found;
      chosen = -1;
      draw();
    }
  };
  const later = debounce(80, complete);
  input.addEventListener('input', () => {
    entries = []; // of the text before
    later();
  });
  input.addEventListener('focus', () => {
    const path = current();
    input.value = anything ? '' : path === '/' ? '/' : path + '/';
    anything = false;
    input.select();
    later();
  });
  input.addEventListener('blur', () => {
    hide();
    input.value = '';
  });
  input.addEventListener('keydown', (e) => {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      chosen = entries.length ? (chosen + (e.key === 'ArrowDown' ? 1 : entries.length) + (chosen < 0 && e.key === 'ArrowUp' ? 1 : 0)) % entries.length : -1;
      draw();
    } else if (e.key === 'Tab' && !e.shiftKey && input.value.startsWith('/') && entries.length > 0) {
      const common = chosen >= 0 ? entries[chosen].text : commonPrefix(entries.map((x) => x.text));
      input.value = entries.length === 1 || chosen >= 0 ? common + '/' : common;
      complete();
    } else if (e.key === 'Escape') {
      input.blur();
      document.getElementById('view').focus();
    } else {
      return;
    }
    e.preventDefault();
  });
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    const text = input.value;
    if (chosen >= 0) {
      open(entries[chosen]);
    } else if (text.startsWith('/')) {
      open(toPath(normal(text)));
    } else {
      open((await others(text))[0] || toPath(normal('/' + text)));
    }
  });
  form.append(icon('search'), input, h('kbd', {class: 'hide-small'}, '/'), list);
  return {
    /** anything opens the box for views, recent paths and searches. */
    anything() {
      anything = true;
      input.blur();
      input.focus();
    },
  };
}

/** commonPrefix returns the longest text with which all texts begin. */
export function commonPrefix(texts) {
  let prefix = texts[0];
  for (const text of texts) {
    while (!text.startsWith(prefix)) {
      prefix = prefix.slice(0, -1);
    }
  }
  return prefix;
}

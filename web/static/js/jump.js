// The box that jumps to a path and completes names.
import * as api from './api.js';
import {debounce, h, icon, replace} from './dom.js';
import {join, normal, parent, znodeHref} from './format.js';

/** jumpBox fills the form. current() returns the path which is open. */
export function jumpBox(form, {go, current}) {
  let names = [];
  let chosen = -1;
  let asked = 0;
  const list = h('ul', {class: 'completions', id: 'completions', role: 'listbox', 'aria-label': 'Znodes', hidden: true});
  const input = h('input', {
    type: 'text', role: 'combobox', 'aria-label': 'Jump to a path', 'aria-controls': 'completions', 'aria-expanded': 'false',
    'aria-autocomplete': 'list', placeholder: 'Jump to a path', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false',
  });
  const hide = () => {
    list.hidden = true;
    chosen = -1;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const draw = () => {
    replace(list, names.map((path, i) => h('li', {
      role: 'option', id: 'completion' + i, class: 'mono', 'aria-selected': String(i === chosen),
      onmousedown: (e) => {
        e.preventDefault();
        open(path);
      },
    }, path)));
    list.hidden = names.length === 0;
    input.setAttribute('aria-expanded', String(!list.hidden));
    if (chosen >= 0) {
      input.setAttribute('aria-activedescendant', 'completion' + chosen);
      list.children[chosen].scrollIntoView({block: 'nearest'});
    } else {
      input.removeAttribute('aria-activedescendant');
    }
  };
  const open = (path) => {
    hide();
    input.blur();
    go(znodeHref(normal(path)));
  };
  const complete = async () => {
    const mine = ++asked;
    const text = input.value.startsWith('/') ? input.value : '/' + input.value;
    const above = normal(text.slice(0, text.lastIndexOf('/')) || '/');
    const prefix = text.slice(text.lastIndexOf('/') + 1);
    try {
      const page = await api.children(above, {prefix: prefix || null, limit: 12, stat: false});
      names = page.children.map((c) => join(above, c.name));
    } catch (error) {
      names = [];
    }
    if (mine === asked && document.activeElement === input) {
      chosen = -1;
      draw();
    }
  };
  const later = debounce(80, complete);
  input.addEventListener('input', later);
  input.addEventListener('focus', () => {
    const path = current();
    input.value = path === '/' ? '/' : path + '/';
    input.select();
    later();
  });
  input.addEventListener('blur', () => {
    hide();
    input.value = '';
  });
  input.addEventListener('keydown', (e) => {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      chosen = names.length ? (chosen + (e.key === 'ArrowDown' ? 1 : names.length) + (chosen < 0 && e.key === 'ArrowUp' ? 1 : 0)) % names.length : -1;
      draw();
    } else if (e.key === 'Tab' && !e.shiftKey && names.length > 0) {
      const common = chosen >= 0 ? names[chosen] : commonPrefix(names);
      input.value = names.length === 1 || chosen >= 0 ? common + '/' : common;
      complete();
    } else if (e.key === 'Escape') {
      input.blur();
      document.getElementById('view').focus();
    } else {
      return;
    }
    e.preventDefault();
  });
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    open(chosen >= 0 ? names[chosen] : input.value || parent('/'));
  });
  form.append(icon('search'), input, h('kbd', {class: 'hide-small'}, '/'), list);
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

// JSON as a tree that folds. The parser keeps numbers as they are written: JSON.parse would round
// those beyond 2^53. Also used to check what a person types.
import {button, h, icon} from '../dom.js';

const maxDepth = 200;
const chunk = 200;
const fits = 300; // values that are unfolded at once

/** JsonError says where a text stops being JSON. */
export class JsonError extends Error {
  constructor(reason, text, offset) {
    const before = text.slice(0, offset).split('\n');
    super('line ' + before.length + ', column ' + (before.at(-1).length + 1) + ': ' + reason);
    this.offset = offset;
  }
}

/**
 * parseJson returns {kind: 'object' | 'array' | 'string' | 'number' | 'word', items | text}. Items of an
 * object are {name, value}, names in their order and with repetitions.
 */
export function parseJson(text) {
  let i = 0;
  const fail = (reason) => {
    throw new JsonError(reason, text, i);
  };
  const space = () => {
    while (i < text.length && ' \t\r\n'.includes(text[i])) {
      i++;
    }
  };
  const token = (pattern) => {
    pattern.lastIndex = i;
    const match = pattern.exec(text);
    if (match) {
      i = pattern.lastIndex;
    }
    return match && match[0];
  };
  const string = () => {
    const start = i;
    const raw = token(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    if (raw === null) {
      i = start;
      fail('a string is not closed, or has a character that must be escaped');
    }
    return JSON.parse(raw);
  };
  const list = (close, item) => {
    const items = [];
    i++;
    space();
    if (text[i] === close) {
      i++;
      return items;
    }
    for (;;) {
      items.push(item());
      space();
      if (text[i] === close) {
        i++;
        return items;
      }
      if (text[i] !== ',') {
        fail(i >= text.length ? 'the text ends early: ' + close + ' is missing' : 'a comma or ' + close + ' is missing');
      }
      i++;
    }
  };
  const value = (depth) => {
    space();
    if (depth > maxDepth) {
      fail('deeper than ' + maxDepth + ' levels');
    }
    if (text[i] === '{') {
      return {kind: 'object', items: list('}', () => {
        space();
        if (text[i] !== '"') {
          fail('a name in quotes is missing');
        }
        const name = string();
        space();
        if (text[i] !== ':') {
          fail('a colon is missing');
        }
        i++;
        return {name, value: value(depth + 1)};
      })};
    }
    if (text[i] === '[') {
      return {kind: 'array', items: list(']', () => ({name: null, value: value(depth + 1)}))};
    }
    if (text[i] === '"') {
      return {kind: 'string', text: string()};
    }
    const number = token(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (number !== null) {
      return {kind: 'number', text: number};
    }
    const word = token(/true|false|null/y);
    if (word === null) {
      fail(i >= text.length ? 'the text ends early' : 'a value is missing');
    }
    return {kind: 'word', text: word};
  };
  const result = value(0);
  space();
  if (i < text.length) {
    fail('more text after the end of the value');
  }
  return result;
}

/** isJson reports whether text is an object or an array. */
export function isJson(text) {
  try {
    return /^\s*[{[]/.test(text) && Boolean(parseJson(text));
  } catch (error) {
    return false;
  }
}

/** formatted returns text, with a line per member if text is JSON. */
export function formatted(text) {
  return isJson(text) ? formatJson(parseJson(text)) : text;
}

/** formatJson writes a parsed value with an indentation of two spaces, numbers unchanged. */
export function formatJson(node, indent = '') {
  if (node.kind === 'string') {
    return JSON.stringify(node.text);
  }
  if (!node.items) {
    return node.text;
  }
  const [open, close] = node.kind === 'object' ? '{}' : '[]';
  if (node.items.length === 0) {
    return open + close;
  }
  if (node.kind === 'array' && node.items.length <= 16 && node.items.every((item) => !item.value.items && item.value.text.length < 12)) {
    return '[' + node.items.map((item) => formatJson(item.value)).join(', ') + ']';
  }
  const inner = indent + '  ';
  return open + '\n' + node.items.map((item) =>
    inner + (item.name === null ? '' : JSON.stringify(item.name) + ': ') + formatJson(item.value, inner)).join(',\n') + '\n' + indent + close;
}

/** plain turns a parsed value into an ordinary one; numbers may lose digits. */
export function plain(node) {
  switch (node.kind) {
    case 'object':
      return Object.fromEntries(node.items.map((item) => [item.name, plain(item.value)]));
    case 'array':
      return node.items.map((item) => plain(item.value));
    case 'string':
      return node.text;
    default:
      return JSON.parse(node.text);
  }
}

function size(node, limit) {
  let n = 1;
  for (const item of node.items || []) {
    n += n > limit ? 0 : size(item.value, limit);
  }
  return n;
}

function scalar(node) {
  return h('span', {class: 'tok-' + node.kind}, node.kind === 'string' ? JSON.stringify(node.text) : node.text);
}

function preview(node) {
  const n = node.items.length;
  return node.kind === 'object' ? '{ ' + n + (n === 1 ? ' member }' : ' members }') : '[ ' + n + (n === 1 ? ' element ]' : ' elements ]');
}

// line shows one member or element; what it contains appears when it is unfolded.
function line(label, node, open, last) {
  const comma = last ? '' : ',';
  if (!node.items || node.items.length === 0) {
    return h('div', {class: 'json-line'}, label, node.items ? (node.kind === 'object' ? '{}' : '[]') : scalar(node), comma);
  }
  const [left, right] = node.kind === 'object' ? '{}' : '[]';
  const inside = h('div', {class: 'json-inside'});
  const tail = h('div', {class: 'json-line'}, right + comma);
  const folded = h('span', {class: 'dim'}, preview(node) + comma);
  const unfolded = h('span', null, left);
  const toggle = h('button', {type: 'button', class: 'json-toggle', 'aria-label': 'Fold or unfold', onclick: () => set(!shown)}, icon('chevron'));
  let shown = !open;
  let filled = 0;
  const fill = () => {
    const end = Math.min(node.items.length, filled + chunk);
    const many = size(node, fits) > fits;
    const lines = [];
    for (let i = filled; i < end; i++) {
      const item = node.items[i];
      const name = item.name === null ? null : [h('span', {class: 'tok-key'}, JSON.stringify(item.name)), ': '];
      lines.push(line(name, item.value, !many, i === node.items.length - 1));
    }
    filled = end;
    if (end < node.items.length) {
      const more = h('button', {type: 'button', class: 'json-more', onclick: () => {
        more.remove();
        fill();
      }}, 'Show more (' + (node.items.length - end) + ' left)');
      lines.push(more);
    }
    inside.append(...lines);
  };
  const set = (next) => {
    shown = next;
    if (shown && filled === 0) {
      fill();
    }
    inside.hidden = tail.hidden = unfolded.hidden = !shown;
    folded.hidden = shown;
    toggle.setAttribute('aria-expanded', String(shown));
  };
  const element = h('div', null, h('div', {class: 'json-line'}, toggle, label, folded, unfolded), inside, tail);
  set(open);
  return element;
}

/** jsonTree shows a parsed value. One that is too large to be unfolded at once has a button for it. */
export function jsonTree(node) {
  const tree = h('div', {class: 'code json', tabindex: '0', 'aria-label': 'JSON'}, line(null, node, true, true));
  const shown = document.createDocumentFragment();
  shown.append(size(node, fits) > fits ? button('Unfold all', (event) => {
    event.currentTarget.hidden = true;
    for (let closed = true; closed;) {
      closed = tree.querySelector('.json-toggle[aria-expanded=false], .json-more');
      closed?.click();
    }
  }, {kind: 'quiet unfold'}) : '', tree);
  return shown;
}

function parsed(input) {
  if (input.json === undefined) {
    try {
      input.json = input.text === null ? null : parseJson(input.text);
    } catch (error) {
      input.json = null;
      input.jsonError = error;
    }
  }
  return input.json;
}

/** json returns the plain object in the data, or null; numbers may lose digits. */
export function jsonObject(input) {
  const node = parsed(input);
  return node && node.kind === 'object' ? plain(node) : null;
}

export const json = {
  id: 'json', label: 'JSON',
  score(input) {
    const start = input.text === null ? '' : input.text.trimStart()[0];
    if (start !== '{' && start !== '[') {
      return input.text !== null && input.text.length < 64 && parsed(input) ? 0.2 : 0;
    }
    return parsed(input) ? 0.95 : 0;
  },
  render: (input) => jsonTree(parsed(input)),
};

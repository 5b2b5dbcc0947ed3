// Builds elements. Text from znodes only ever becomes a text node or an attribute value: nothing in
// the explorer parses a string as HTML.

const svgNamespace = 'http://www.w3.org/2000/svg';

/**
 * h creates an element: h('a', {class: 'path', href: '#/z/', onclick: f}, 'text', child, [children]).
 * Properties: class, style (an object), dataset (an object), on… (listeners), anything else is an
 * attribute; null, undefined and false leave the attribute out, true gives an empty one.
 */
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

/** svg creates an element of a picture; it takes the arguments of h. */
export function svg(tag, props, ...children) {
  return build(document.createElementNS(svgNamespace, tag), props, children);
}

function build(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) {
      continue;
    }
    if (name.startsWith('on')) {
      element.addEventListener(name.slice(2), value);
    } else if (name === 'style') {
      // Through the object model: the content security policy forbids style attributes.
      for (const [key, text] of Object.entries(value)) {
        element.style.setProperty(key, text);
      }
    } else if (name === 'dataset') {
      Object.assign(element.dataset, value);
    } else if (name === 'value' && 'value' in element) {
      element.value = value;
    } else {
      element.setAttribute(name === 'className' ? 'class' : name, value === true ? '' : value);
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) {
      append(element, child);
    } else if (child instanceof Node) {
      element.append(child);
    } else if (child !== null && child !== undefined && child !== false) {
      element.append(String(child));
    }
  }
}

/** replace gives an element new children. The focus stays on what looks the same. */
export function replace(element, ...children) {
  const restore = keepFocus(element);
  element.textContent = '';
  append(element, children);
  restore();
  return element;
}

/**
 * keepFocus remembers which control inside of an element has the focus, and returns a function that
 * gives it to the same control, or to one with the same name in the same row or card.
 */
export function keepFocus(element) {
  const had = document.activeElement;
  if (!had || had === element || !element.contains(had)) {
    return () => null;
  }
  const [wanted, nth] = [looks(had), twins(element, had).indexOf(had)];
  return () => {
    if (document.activeElement === had) {
      return;
    }
    const all = element.contains(had) ? [had] : twins(element, had, wanted);
    (all[nth] || all[0])?.focus({preventScroll: true});
  };
}

function twins(element, had, wanted = looks(had)) {
  return [...element.querySelectorAll(had.tagName)].filter((e) => looks(e) === wanted);
}

function looks(e) {
  return [e.getAttribute('href') || e.getAttribute('aria-label') || e.textContent, e.closest('tr')?.cells[0].textContent,
    e.closest('section, details')?.querySelector('h2, h3, summary')?.textContent].join('\n');
}

// A browser drops a click if the pressed control is drawn anew before the release. The click then goes
// to the control that looks the same in its place, so that redrawing loses no clicks.
let pressed = null;

function control(event) {
  const at = event.button === 0 && event.target instanceof Element ? event.target.closest('a, button, [role=treeitem]') : null;
  return at && {at, looks: looks(at.querySelector('a') || at)};
}

addEventListener('pointerdown', (event) => {
  pressed = control(event);
});

addEventListener('pointerup', (event) => {
  if (pressed && !pressed.at.isConnected && control(event)?.looks === pressed.looks) {
    event.target.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, ctrlKey: event.ctrlKey, metaKey: event.metaKey, shiftKey: event.shiftKey}));
  }
  pressed = null;
});

const icons = {
  pin: 'M10 3.5l2 4.3 4.6.6-3.4 3.2.9 4.7-4.1-2.3-4.1 2.3.9-4.7L3.4 8.4 8 7.8z',
  chevron: 'M7.5 5l5 5-5 5', copy: 'M7.5 7.5h8v8h-8zM12.5 7.5v-3h-8v8h3', edit: 'M4.5 15.5l.8-3.2 8-8 2.4 2.4-8 8z',
  plus: 'M10 4.5v11M4.5 10h11', trash: 'M4.5 6h11M8 6V4.5h4V6M6 6l.7 9.5h6.6L14 6', close: 'M5.5 5.5l9 9M14.5 5.5l-9 9',
  search: 'M12.8 12.8L16 16M13.5 9a4.5 4.5 0 11-9 0 4.5 4.5 0 019 0z', refresh: 'M15.5 10a5.5 5.5 0 11-1.6-3.9M15.5 4v3h-3',
  live: 'M2.5 10h3.2l2-5 3.2 10 2.3-5h4.3', lock: 'M5.5 9h9v7h-9zM7.2 9V6.8a2.8 2.8 0 015.6 0V9', more: 'M5 10h.01M10 10h.01M15 10h.01',
  download: 'M10 4v8M6.5 8.8L10 12.2l3.5-3.4M4.5 15.5h11', upload: 'M10 12.5V4.5M6.5 8L10 4.5 13.5 8M4.5 15.5h11',
  sun: 'M10 6.7a3.3 3.3 0 100 6.6 3.3 3.3 0 000-6.6zM10 2.5v1.6M10 15.9v1.6M2.5 10h1.6M15.9 10h1.6M4.7 4.7l1.1 1.1M14.2 14.2l1.1 1.1M4.7 15.3l1.1-1.1M14.2 5.8l1.1-1.1',
  moon: 'M15.8 12.2A6.3 6.3 0 017.8 4.2a6.3 6.3 0 108 8z', user: 'M10 9.5a2.8 2.8 0 100-5.6 2.8 2.8 0 000 5.6zM4.5 16c.6-3 2.7-4.5 5.5-4.5s4.9 1.5 5.5 4.5',
  help: 'M7.4 7.6a2.6 2.6 0 115 .9c-.5 1.1-2.4 1.5-2.4 3M10 14.8h.01', clock: 'M10 3.5a6.5 6.5 0 100 13 6.5 6.5 0 000-13zM10 6.5V10l2.5 1.8',
  eye: 'M2.5 10s2.8-4.8 7.5-4.8 7.5 4.8 7.5 4.8-2.8 4.8-7.5 4.8S2.5 10 2.5 10zM10 8a2 2 0 100 4 2 2 0 000-4z', warn: 'M10 4l6.5 11.5h-13zM10 8.5v3M10 13.6h.01',
  check: 'M4.5 10.5l3.6 3.5 7.4-8', tree: 'M5 3.5v10.8h4M5 8h4M11 6.2h5v3.6h-5zM11 12.5h5v3.6h-5z', history: 'M4.6 8a5.8 5.8 0 11-.3 3.4M4 4.5V8h3.5M10 7v3.3l2.3 1.4',
};

/** icon draws one of the icons above, hidden from screen readers: the control beside it has a name. */
export function icon(name) {
  return svg('svg', {class: 'icon', viewBox: '0 0 20 20', 'aria-hidden': 'true'},
    svg('path', {d: icons[name] || icons.more}));
}

/** button creates a button; kind is '', 'primary', 'danger' or 'quiet'. A reason disables it. */
export function button(label, onclick, {kind = '', iconName, title, reason, id, pressed} = {}) {
  return h('button', {
    type: 'button', id, class: 'button ' + kind, title: reason || title, disabled: Boolean(reason), onclick,
    'aria-pressed': pressed === undefined ? null : String(pressed),
    'aria-label': label ? null : title,
  }, iconName && icon(iconName), label && h('span', null, label));
}

/** badge creates a small label; kind is '', 'accent', 'good', 'warn' or 'bad'. */
export function badge(text, kind = '', title = null) {
  return h('span', {class: 'badge ' + kind, title}, text);
}

/** field puts a label, and a hint, around an input. */
export function field(label, input, hint) {
  return h('label', {class: 'field'}, h('span', {class: 'field-label'}, label), input,
    hint && h('span', {class: 'hint'}, hint));
}

/** select creates a choice from options [[value, label], …]. */
export function select(options, value, onchange, props) {
  return h('select', {...props, onchange: (e) => onchange && onchange(e.target.value)},
    options.map(([v, label]) => h('option', {value: v, selected: v === value}, label)));
}

/** empty says that there is nothing to see, and what to do about it. */
export function empty(title, text, ...actions) {
  return h('div', {class: 'empty'}, h('p', {class: 'empty-title'}, title), text && h('p', null, text),
    actions.length > 0 && h('div', {class: 'row'}, actions));
}

/** problem shows an error with its remedy and a button that tries again. */
export function problem(error, retry) {
  return h('div', {class: 'problem', role: 'alert'}, icon('warn'), h('div', null,
    h('p', {class: 'problem-title'}, error.title || 'The request failed'),
    h('p', null, error.message), error.remedy && h('p', {class: 'dim'}, error.remedy), error.offer),
    retry && button('Try again', retry, {iconName: 'refresh'}));
}

/** loading is a placeholder which stays invisible for the first 200 ms. */
export function loading(lines = 3) {
  return h('div', {class: 'loading', 'aria-busy': 'true', 'aria-label': 'Loading'},
    Array.from({length: lines}, (_, i) => h('div', {class: 'bone', style: {width: 90 - 17 * (i % 4) + '%'}})));
}

/** copy puts text on the clipboard, also where the page is not served from a secure origin. */
export async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = h('textarea', {class: 'offscreen', value: text});
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** download saves bytes as a file. */
export function download(name, bytes) {
  const url = URL.createObjectURL(new Blob([bytes], {type: 'application/octet-stream'}));
  h('a', {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** debounce delays a function until it has not been called for ms. */
export function debounce(ms, f) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), ms);
  };
}

/** setting reads a value that this browser keeps, remember stores it. */
export function setting(key, fallback) {
  try {
    const text = localStorage.getItem('gozkd.' + key);
    return text === null ? fallback : JSON.parse(text);
  } catch (e) {
    return fallback;
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem('gozkd.' + key, JSON.stringify(value));
  } catch (e) {
    // Without storage the choice lasts as long as the page.
  }
}

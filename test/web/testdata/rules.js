// Rules of accessibility, checked on what is in sight. Returns what breaks them.
(() => {
  const bad = [];
  const all = (css) => [...document.querySelectorAll(css)].filter(person.seen);
  const show = (e) => e.outerHTML.slice(0, 160);
  const say = (rule, e) => bad.push(rule + ': ' + show(e));

  if (!document.documentElement.lang || !document.title) {
    bad.push('the page needs a language and a title');
  }
  for (const [css, n] of [['main', 1], ['header.top', 1], ['nav[aria-label]', 1]]) {
    if (document.querySelectorAll(css).length < n) {
      bad.push('landmark missing: ' + css);
    }
  }
  if (document.querySelectorAll('main').length !== 1) {
    bad.push('more than one main');
  }
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => bad.push('id twice: ' + id));
  for (const name of ['aria-labelledby', 'aria-describedby', 'aria-controls', 'aria-activedescendant']) {
    for (const e of all('[' + name + ']')) {
      if (e.getAttribute(name).split(' ').some((id) => !document.getElementById(id))) {
        say(name + ' leads nowhere', e);
      }
    }
  }
  for (const e of all('button, a[href], input, select, textarea, [role=tree], [role=treeitem], [role=img], [role=list], [role=separator], dialog, nav, summary')) {
    const placeholder = e.placeholder && !e.getAttribute('aria-label') && !(e.labels?.length > 0);
    if (!person.name(e) || placeholder) {
      say('no name', e);
    }
  }
  all('img:not([alt])').forEach((e) => say('no alt', e));
  all('[tabindex]').filter((e) => Number(e.getAttribute('tabindex')) > 0).forEach((e) => say('tabindex above 0', e));
  for (const table of all('table')) {
    if (!table.caption && !table.closest('.tail')) {
      say('no caption', table);
    }
    table.querySelectorAll('th:not([scope])').forEach((e) => say('no scope', e));
  }
  for (const [role, parent] of [['treeitem', '[role=tree]'], ['listitem', '[role=list]'], ['option', '[role=listbox]'], ['tab', '[role=tablist]']]) {
    all('[role=' + role + ']').filter((e) => !e.closest(parent)).forEach((e) => say(role + ' outside of ' + parent, e));
  }
  for (const e of all('button [role=button], a button, button a, a a, button button, label button, [role=img] a')) {
    say('a control inside of a control', e);
  }
  // Scrolling needs the keyboard: a box that scrolls has the focus or something inside that can have it.
  for (const e of all('main *, dialog *')) {
    const style = getComputedStyle(e);
    const scrolls = (/auto|scroll/.test(style.overflowY) && e.scrollHeight > e.clientHeight + 1) || (/auto|scroll/.test(style.overflowX) && e.scrollWidth > e.clientWidth + 1);
    if (scrolls && e.tabIndex < 0 && !e.querySelector('a[href], button, input, [tabindex="0"]')) {
      say('scrolls, but not by keyboard', e);
    }
  }
  let level = 0;
  const place = [...document.querySelectorAll('dialog[open]')].at(-1) || document;
  for (const e of [...place.querySelectorAll('h1, h2, h3, h4')].filter((e) => e.checkVisibility())) {
    const next = Number(e.tagName[1]);
    if (next > level + 1 && !(level === 0 && place !== document)) {
      say('heading of level ' + next + ' after ' + level, e);
    }
    level = next;
  }
  if (place === document && document.querySelectorAll('h1').length !== 1) {
    bad.push('h1: ' + document.querySelectorAll('h1').length);
  }

  // Small targets: WCAG 2.2 wants 24 px, or as much distance; links in text are excepted.
  for (const e of all('button, select, input:not([type=checkbox]):not([type=radio]):not([type=file])')) {
    const r = e.getBoundingClientRect();
    if ((r.width < 24 || r.height < 24) && !e.matches('.sort, .json-toggle, .json-more')) {
      say('smaller than 24 px: ' + Math.round(r.width) + 'x' + Math.round(r.height), e);
    }
  }

  // Contrast of text: 4.5, or 3 for large text.
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const paint = canvas.getContext('2d', {willReadFrequently: true});
  const rgba = (color) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = color;
    paint.fillRect(0, 0, 1, 1);
    return paint.getImageData(0, 0, 1, 1).data;
  };
  const over = (top, below) => [0, 1, 2].map((i) => (top[i] * top[3] + below[i] * (255 - top[3])) / 255);
  const ground = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const c = rgba(getComputedStyle(at).backgroundColor);
      layers.push(c);
      if (c[3] === 255) {
        break;
      }
    }
    return layers.reverse().reduce((below, c) => over(c, below), [255, 255, 255]);
  };
  const luminance = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const told = new Set();
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !person.seen(e) || e.closest('svg, [disabled], [aria-disabled=true], noscript') || e.closest('.loading, .flash, .toast')) {
      continue;
    }
    const style = getComputedStyle(e);
    const below = ground(e);
    const text = over(rgba(style.color), below);
    const [a, b] = [luminance(text), luminance(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && Number(style.fontWeight) >= 700);
    const key = style.color + e.className;
    // The dashes of permissions that an entry lacks only keep the columns.
    if (ratio < (large ? 3 : 4.5) && !told.has(key) && !(e.closest('.perms') && walker.currentNode.data === '–')) {
      told.add(key);
      say('contrast ' + ratio.toFixed(2), e);
    }
  }

  // Who uses the keyboard sees the focus.
  const had = document.activeElement;
  for (const e of [...place.querySelectorAll('button, a[href], input, select, textarea, [tabindex="0"]')].filter((e) => person.seen(e) && !e.disabled)) {
    e.focus({focusVisible: true, preventScroll: true});
    if (document.activeElement !== e) {
      continue;
    }
    const style = getComputedStyle(e);
    const cursor = e.matches('[role=tree]') && e.querySelector('.cursor') && getComputedStyle(e.querySelector('.cursor')).boxShadow !== 'none';
    if (style.outlineStyle === 'none' && style.boxShadow === 'none' && !cursor && !e.matches('.jump input, .divider')) {
      say('the focus is not visible', e);
    }
  }
  if (had && had !== document.body) {
    had.focus({preventScroll: true});
  } else {
    document.activeElement.blur();
  }
  return bad;
})()

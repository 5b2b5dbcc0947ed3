// What a person sees of a page: elements that are visible, by their names. The tests call these functions.
window.person = (() => {
  const normal = (text) => (text || '').replace(/\s+/g, ' ').trim();

  // While a dialog is open, everything else is out of reach.
  const reach = () => [...document.querySelectorAll('dialog[open]')].at(-1) || document;

  const labelled = (e) => (e.getAttribute('aria-labelledby') || '').split(' ').map((id) => document.getElementById(id)?.textContent || '').join(' ');

  // name is close to the accessible name: what a screen reader says.
  function name(e) {
    const label = e.labels?.length > 0 ? e.labels[0].querySelector('.field-label') || e.labels[0] : null;
    return normal(e.getAttribute('aria-label') || labelled(e) || (label && label.textContent) ||
      (e.matches('input, textarea, select') ? e.placeholder || e.title : e.textContent) || e.title);
  }

  function seen(e) {
    return e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && e.getClientRects().length > 0 && !e.closest('.offscreen');
  }

  /** all returns the elements in sight that have the name; a name that begins with = must be equal. */
  function all(css, text = '') {
    const fits = text.startsWith('=') ? (n) => n === text.slice(1) : (n) => n.includes(text);
    const root = reach();
    return [...(root.matches?.(css) ? [root] : []), ...root.querySelectorAll(css)].filter((e) => seen(e) && (!text || fits(name(e))));
  }

  /** point scrolls to an element and returns where to click, or null while that is not possible. */
  function point(css, text) {
    const e = all(css, text)[0];
    if (!e || e.disabled || e.getAttribute('aria-disabled') === 'true') {
      return null;
    }
    e.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});
    const r = e.getBoundingClientRect();
    const [x, y] = [r.left + Math.min(r.width / 2, 200), r.top + r.height / 2];
    const hit = document.elementFromPoint(x, y);
    return hit && (e.contains(hit) || hit.contains(e)) ? {x, y} : null;
  }

  const text = (css = 'body') => all(css).map((e) => normal(e.innerText ?? e.textContent)).join('\n');
  const has = (css, wanted) => all(css).some((e) => normal(e.innerText ?? e.textContent).includes(wanted));
  const focused = () => document.activeElement && document.activeElement !== document.body ? document.activeElement.tagName.toLowerCase() + ' ' + name(document.activeElement) : '';

  let stream = null; // of changes: the last that the page has begun
  window.EventSource = class extends EventSource {
    constructor(...args) {
      super(...args);
      stream = this;
    }
  };

  /** follows reports whether the page is live by a stream whose address ends like this: for a moment it also is by that of the view before. */
  const follows = (end) => stream?.readyState === EventSource.OPEN && stream.url.endsWith(end) && all('.live[aria-label=live]').length === 1;
  return {all, name, point, text, has, focused, follows, seen, normal};
})();

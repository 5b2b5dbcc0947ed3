// Differences of two texts, line by line.
import {h} from './dom.js';

const maxCells = 4e6;

/**
 * diffLines returns [{kind: ' ' | '-' | '+', text}]: the longest common subsequence after equal lines
 * at both ends are set aside. Where that would cost too much, the middle is removed and added whole.
 */
export function diffLines(left, right) {
  const a = left.split('\n');
  const b = right.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) {
    start++;
  }
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) {
    end++;
  }
  return [
    ...a.slice(0, start).map(line(' ')),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(line(' ')),
  ];
}

function line(kind) {
  return (text) => ({kind, text});
}

function middle(a, b) {
  if (a.length * b.length > maxCells) {
    return [...a.map(line('-')), ...b.map(line('+'))];
  }
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({kind: ' ', text: a[i]});
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      out.push({kind: '-', text: a[i++]});
    } else {
      out.push({kind: '+', text: b[j++]});
    }
  }
  return out;
}

const context = 3;

/** diffView shows the difference of two texts; long equal parts are left out. */
export function diffView(left, right, label = 'Differences') {
  const lines = diffLines(left, right);
  if (lines.every((l) => l.kind === ' ')) {
    return h('p', {class: 'dim'}, 'No difference, except perhaps in the white space of JSON.');
  }
  const rows = [];
  let skipped = 0;
  lines.forEach((l, i) => {
    const near = lines.slice(Math.max(0, i - context), i + context + 1).some((x) => x.kind !== ' ');
    if (!near) {
      skipped++;
      return;
    }
    if (skipped > 0) {
      rows.push(gap(skipped));
      skipped = 0;
    }
    rows.push(h('div', {class: l.kind === '+' ? 'added' : l.kind === '-' ? 'removed' : ''}, l.kind + ' ' + l.text));
  });
  if (skipped > 0) {
    rows.push(gap(skipped));
  }
  return h('pre', {class: 'diff', tabindex: '0', 'aria-label': label}, rows.slice(0, 5000));
}

function gap(n) {
  return h('div', {class: 'gap'}, '⋯ ' + n + (n === 1 ? ' equal line' : ' equal lines'));
}

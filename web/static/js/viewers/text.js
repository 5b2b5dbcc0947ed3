// Viewers of text: plain, YAML, properties, XML. None interprets more than it needs for colours.
import {h} from '../dom.js';

const maxColoured = 200000; // characters; longer texts are shown plain

/** decode returns the text in UTF-8 bytes, or null if they are not text. */
export function decode(data) {
  let text;
  try {
    text = new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(data);
  } catch (error) {
    return null;
  }
  // eslint-disable-next-line no-control-regex
  return /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text) ? null : text;
}

function code(label, ...children) {
  return h('pre', {class: 'code', tabindex: '0', 'aria-label': label}, children);
}

export const text = {
  id: 'text', label: 'Text',
  score: (input) => (input.text === null ? 0 : 0.5),
  render: (input) => code('Text', input.text),
};

function lines(input) {
  return input.text === null ? [] : input.text.split('\n').slice(0, 200).map((l) => l.trimEnd()).filter((l) => l && !/^\s*#/.test(l));
}

function share(list, pattern) {
  return list.length === 0 ? 0 : list.filter((l) => pattern.test(l)).length / list.length;
}

const yamlLine = /^\s*(?:- )*(?:[\w.$/"'-][\w .$/"'-]*:(?:\s|$)|- ?\S|---$)/;

export const yaml = {
  id: 'yaml', label: 'YAML',
  score(input) {
    const list = lines(input);
    if (list.length === 0) {
      return 0;
    }
    const fits = share(list, yamlLine);
    return /\.ya?ml$/.test(input.path) && fits > 0.3 ? 0.9 : fits > 0.7 && (list.length > 1 || fits === 1) && /^[\w.-]+:(\s|$)/m.test(input.text) ? 0.7 : 0;
  },
  render: (input) => coloured('YAML', input.text, yamlTokens),
};

export const properties = {
  id: 'properties', label: 'Properties',
  score(input) {
    const list = lines(input);
    // One line that ends with = is rather base64.
    const fits = list.length === 1 && list[0].endsWith('=') ? 0 : share(list, /^[^\s=:]+\s*=/);
    return /\.(properties|conf|ini|cfg)$/.test(input.path) && fits > 0.3 ? 0.9 : fits > 0.7 ? 0.75 : 0;
  },
  render: (input) => coloured('Properties', input.text, propertyTokens),
};

function coloured(label, value, tokens) {
  if (value.length > maxColoured) {
    return code(label, value);
  }
  return code(label, value.split('\n').flatMap((line, i) => [i > 0 ? '\n' : '', ...tokens(line)]));
}

function span(kind, value) {
  return h('span', {class: 'tok-' + kind}, value);
}

function yamlTokens(line) {
  const match = /^(\s*(?:- )*)([^\s#'"][^#]*?|"[^"]*"|'[^']*')(:)(\s.*|)$/.exec(line);
  if (/^\s*#/.test(line)) {
    return [span('comment', line)];
  }
  if (match) {
    return [match[1], span('key', match[2]), match[3], ...yamlValue(match[4])];
  }
  const item = /^(\s*(?:- )+)(.*)$/.exec(line);
  return item ? [item[1], ...yamlValue(item[2])] : [line];
}

function yamlValue(value) {
  const [, body, comment] = /^(.*?)(\s#.*)?$/s.exec(value);
  const trimmed = body.trim();
  const kind = /^-?[\d.]+(e[+-]?\d+)?$/i.test(trimmed) ? 'number' : /^(true|false|null|yes|no|~)$/i.test(trimmed) ? 'word' : trimmed ? 'string' : '';
  return [kind ? span(kind, body) : body, comment ? span('comment', comment) : ''];
}

function propertyTokens(line) {
  if (/^\s*[#!;]/.test(line)) {
    return [span('comment', line)];
  }
  const match = /^([^=:]+)([=:])(.*)$/s.exec(line);
  return match ? [span('key', match[1]), match[2], span('string', match[3])] : [line];
}

export const xml = {
  id: 'xml', label: 'XML',
  score: (input) => (input.text !== null && /^\s*<(\?xml|!DOCTYPE|[A-Za-z][\w.:-]*[\s/>])/.test(input.text) && /<\/?[\w.:-]+[^<]*>\s*$/.test(input.text) ? 0.9 : 0),
  render: (input) => (input.text.length > maxColoured ? code('XML', input.text) : code('XML', xmlLines(input.text))),
};

/** xmlTokens splits a document into comments, declarations, tags and text. */
export function xmlTokens(value) {
  return value.match(/<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<!\[CDATA\[[\s\S]*?\]\]>|<[^>]*>|[^<]+|</g) || [];
}

// xmlLines indents by the depth of elements. An element with nothing but text stays on one line.
function xmlLines(value) {
  const tokens = xmlTokens(value).filter((t) => t.trim() !== '');
  const out = [];
  let depth = 0;
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i].trim();
    const closes = token.startsWith('</');
    depth -= closes ? 1 : 0;
    out.push(i > 0 ? '\n' : '', '  '.repeat(Math.max(0, depth)), ...tagTokens(token));
    if (/^<[A-Za-z]/.test(token) && !token.endsWith('/>')) {
      if (tokens[i + 1]?.startsWith('</')) {
        out.push(...tagTokens(tokens[++i].trim()));
      } else if (tokens[i + 1] && !tokens[i + 1].startsWith('<') && tokens[i + 2]?.startsWith('</')) {
        out.push(tokens[++i].trim(), ...tagTokens(tokens[++i].trim()));
      } else {
        depth++;
      }
    }
  }
  return out;
}

function tagTokens(token) {
  if (token.startsWith('<!') || token.startsWith('<?')) {
    return [span('comment', token)];
  }
  const match = /^(<\/?)([\w.:-]+)([\s\S]*?)(\/?>)$/.exec(token);
  if (!match) {
    return [token];
  }
  const attributes = match[3].split(/("[^"]*"|'[^']*')/).map((part, i) => (i % 2 ? span('string', part) : span('number', part)));
  return [match[1], span('key', match[2]), ...attributes, match[4]];
}

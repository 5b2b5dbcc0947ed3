// Viewers of bytes: a hex dump, and the fields of a protobuf message without its schema.
import {h} from '../dom.js';
import {virtualList} from '../list.js';
import {decode} from './text.js';

/** hexLine returns offset, bytes and characters of a line, which has 16 bytes or 8. */
export function hexLine(data, offset, width = 16) {
  let bytes = '';
  let characters = '';
  for (let i = offset; i < offset + width; i++) {
    if (i === offset + 8) {
      bytes += ' ';
    }
    if (i < data.length) {
      bytes += data[i].toString(16).padStart(2, '0') + ' ';
      characters += data[i] >= 32 && data[i] < 127 ? String.fromCharCode(data[i]) : '·';
    } else {
      bytes += '   ';
    }
  }
  return [offset.toString(16).padStart(8, '0'), bytes.trimEnd().padEnd(3 * width), characters];
}

function numbers(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.length === 4) {
    return 'As a big-endian number: ' + view.getInt32(0) + ' (int), ' + view.getFloat32(0) + ' (float)';
  }
  if (data.length !== 8) {
    return null;
  }
  const n = view.getBigInt64(0);
  const date = n > 946684800000n && n < 4102444800000n ? ', ' + new Date(Number(n)).toISOString() : '';
  return 'As a big-endian number: ' + n + ' (long' + date + '), ' + view.getFloat64(0) + ' (double)';
}

export const hex = {
  id: 'hex', label: 'Hex',
  score: (input) => (input.text === null ? 0.3 : 0.05),
  render(input) {
    const width = innerWidth < 520 ? 8 : 16;
    const count = Math.ceil(input.data.length / width);
    const list = virtualList({
      count: () => count, rowHeight: 20,
      row: (i) => {
        const [offset, bytes, characters] = hexLine(input.data, width * i, width);
        return h('div', {class: 'hex-row'}, h('span', {class: 'dim'}, offset), '  ', bytes, '  ', h('span', {class: 'tok-string'}, characters));
      },
      props: {class: 'code hex', tabindex: '0', 'aria-label': 'Hex dump', style: {height: Math.min(24, count) * 20 + 18 + 'px'}},
    });
    const note = numbers(input.data);
    return h('div', null, note && h('p', {class: 'dim viewer-note'}, note), list.element);
  },
};

const maxFields = 2000;

/** parseProtobuf returns [{number, type, value}], or null if the bytes are not such a message. */
export function parseProtobuf(data, depth = 0) {
  const fields = [];
  let i = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (i >= data.length) {
        return null;
      }
      const byte = data[i++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) {
        return value;
      }
    }
    return null;
  };
  while (i < data.length) {
    const key = varint();
    if (key === null || key >> 3n === 0n || key >> 3n > 536870911n || fields.length >= maxFields) {
      return null;
    }
    const number = Number(key >> 3n);
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    let value;
    switch (Number(key & 7n)) {
      case 0:
        value = varint();
        if (value === null) {
          return null;
        }
        fields.push({number, type: 'varint', value});
        break;
      case 1:
      case 5: {
        const size = (key & 7n) === 1n ? 8 : 4;
        if (i + size > data.length) {
          return null;
        }
        fields.push(size === 8 ? {number, type: 'fixed64', value: view.getBigUint64(i, true), float: view.getFloat64(i, true)}
          : {number, type: 'fixed32', value: view.getUint32(i, true), float: view.getFloat32(i, true)});
        i += size;
        break;
      }
      case 2: {
        const length = varint();
        if (length === null || length > BigInt(data.length - i)) {
          return null;
        }
        value = data.subarray(i, i + Number(length));
        i += Number(length);
        fields.push({number, ...inside(value, depth)});
        break;
      }
      default:
        return null;
    }
  }
  return fields;
}

function inside(value, depth) {
  const message = value.length > 1 && depth < 16 ? parseProtobuf(value, depth + 1) : null;
  const string = decode(value);
  if (string !== null && (message === null || /^[\x20-\x7e]+$/.test(string))) {
    return {type: 'string', value: string};
  }
  return message ? {type: 'message', value: message} : {type: 'bytes', value};
}

function fieldLines(fields, indent) {
  return fields.flatMap((f) => {
    const head = [indent, h('span', {class: 'tok-key'}, String(f.number)), ': '];
    switch (f.type) {
      case 'message':
        return [...head, '{\n', ...fieldLines(f.value, indent + '  '), indent, '}\n'];
      case 'string':
        return [...head, h('span', {class: 'tok-string'}, JSON.stringify(f.value)), '\n'];
      case 'bytes':
        return [...head, h('span', {class: 'tok-word'}, Array.from(f.value.subarray(0, 64), (b) => b.toString(16).padStart(2, '0')).join(' ')),
          f.value.length > 64 ? ' … ' + f.value.length + ' bytes' : '', '\n'];
      default:
        return [...head, h('span', {class: 'tok-number'}, String(f.value)), h('span', {class: 'dim'}, ' ' + f.type + (f.float === undefined ? '' : ', as a float ' + f.float)), '\n'];
    }
  });
}

export const protobuf = {
  id: 'protobuf', label: 'Protobuf',
  score: (input) => (input.text === null && input.data.length < 65536 && parseProtobuf(input.data) ? 0.4 : 0),
  render: (input) => h('pre', {class: 'code', tabindex: '0', 'aria-label': 'Protobuf fields'}, fieldLines(parseProtobuf(input.data), '')),
};

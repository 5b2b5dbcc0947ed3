// Tests of the explorer's pure functions. A page of the explorer runs them: the module is evaluated
// there with the address of its scripts, and returns the list of failures.
export async function run(base) {
  const load = (name) => import(base + 'js/' + name);
  const [format, json, text, binary, packed, viewers, diff, edit, jump, app, chart] = await Promise.all(['format.js', 'viewers/json.js',
    'viewers/text.js', 'viewers/binary.js', 'viewers/packed.js', 'viewers/index.js', 'diff.js', 'edit.js', 'jump.js', 'list.js', 'chart.js'].map(load));
  const failures = [];
  const equal = (what, got, want) => {
    if (JSON.stringify(got) !== JSON.stringify(want)) {
      failures.push(what + ': got ' + JSON.stringify(got) + ', want ' + JSON.stringify(want));
    }
  };
  const fails = (what, f) => {
    try {
      f();
      failures.push(what + ': no error');
    } catch (error) {
      // As it must be.
    }
  };
  const bytes = (s) => (typeof s === 'string' ? new TextEncoder().encode(s) : Uint8Array.from(s));
  const input = (data, path = '/a/b') => ({data: bytes(data), text: text.decode(bytes(data)), path});
  const first = (data, path) => viewers.sniff(input(data, path))[0].id;

  for (const path of ['/', '/a', '/a b/ü日本', '/per%cent/q?#&', '/<b>/"\'', '/a%2Fb']) {
    equal('path ' + path, format.decodePath(format.encodePath(path)), path);
  }
  equal('normal', ['', 'a', '//a//b/', ' /a '].map(format.normal), ['/', '/a', '/a/b', '/a']);
  equal('parent', ['/', '/a', '/a/b'].map(format.parent), ['/', '/', '/a']);
  equal('duration', [0, 0.0401, 999, 1500, 61000, 3600000, 90061000].map(format.duration), ['0 ms', '41 µs', '999 ms', '1.5 s', '1 min 1 s', '1 h', '1 d 1 h']);
  equal('bytes', [0, 1023, 1536, 20480, 1 << 20].map(format.bytes), ['0 B', '1023 B', '1.5 KiB', '20 KiB', '1.0 MiB']);
  equal('compact', [7, 999, 1000, 12345, 100000, 4500000].map(format.compact), ['7', '999', '1k', '12.3k', '100k', '4.5M']);
  equal('ago', [500, 5000, 120000, 7200000].map((ms) => format.ago(1e12 - ms, 1e12)), ['now', '5 s ago', '2 min ago', '2 h ago']);
  equal('order', ['a10', 'a2', 'a1'].sort(app.compare), ['a1', 'a2', 'a10']);
  for (const [values, text, filled] of [[[7, 7], 'constant', false], [[0, 0], 'constant', true], [[90, 100, 95], '90 to 100', false], [[50, 100], 'peak 100', true], [[0, 0.5], 'peak 0.5', true]]) {
    const card = chart.chart('Values', values, 'the last hour', '20 s');
    equal('range of ' + values, [card.querySelector('.dim').textContent, Boolean(card.querySelector('polygon'))], [text, filled]);
    const heights = card.querySelector('polyline').getAttribute('points').split(' ').map((p) => Number(p.split(',')[1]));
    equal('heights of ' + values, heights.every((y, i) => y >= 0 && y <= 64 && (i === 0 || Math.sign(heights[i - 1] - y) === Math.sign(values[i] - values[i - 1]))), true);
  }
  equal('prefix', jump.commonPrefix(['/app/one', '/app/only']), '/app/on');

  equal('numbers keep their digits', json.formatJson(json.parseJson('{"a":9007199254740993,"b":0.10}')), '{\n  "a": 9007199254740993,\n  "b": 0.10\n}');
  for (const bad of ['{', '{"a":1,}', '[1 2]', '"\n"', '01', '{"a":1} x', '"\\x"', 'nul', '['.repeat(300)]) {
    fails('JSON ' + bad.slice(0, 20), () => json.parseJson(bad));
  }
  for (const good of ['[]', '{}', ' null ', '-1.5e+3', '"\\u00e9\\n"', '[[1,2],{"x":[true,false]}]']) {
    equal('JSON ' + good, json.plain(json.parseJson(good)), JSON.parse(good));
  }

  const kafka = '{"listener_security_protocol_map":{},"endpoints":["PLAINTEXT://k:9092"],"host":"k","port":9092,"version":5,"timestamp":"1"}';
  const samples = [
    ['text', 'hello world'], ['text', '10.1.2.3'], ['text', 'a: b'.slice(0, 1)], ['json', '{"a": 1}'], ['json', '[1, 2]'], ['text', '{not json'],
    ['yaml', 'server:\n  host: x\n  ports:\n    - 1\n    - 2\n'], ['properties', 'a.b=c\n# x\nd = e\n'], ['xml', '<a><b>c</b></a>'], ['xml', '<?xml version="1.0"?><a/>'],
    ['gzip', [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]], ['zstd', [0x28, 0xb5, 0x2f, 0xfd, 0]], ['zlib', [0x78, 0x9c, 0xab, 0x56, 0, 0, 1]],
    ['base64', btoa('{"some": "thing"}')], ['hex', [0, 255, 254, 1]], ['protobuf', [8, 150, 1, 18, 2, 104, 105, 26, 1, 255]],
    ['clickhouse', 'columns format version: 1\n1 columns:\n`id` UInt64\n'], ['clickhouse', 'host: h\nport: 9009\ntcp_port: 9000\n'],
    ['curator', '{"name":"s","id":"1","address":"h","port":1,"serviceType":"DYNAMIC"}'],
  ];
  for (const [want, data] of samples) {
    equal('viewer of ' + data, first(data), want);
  }
  equal('viewer of a broker', first(kafka, '/kafka/brokers/ids/1'), 'kafka');
  equal('the same elsewhere', first(kafka, '/app/x'), 'json');
  for (const [, data] of samples) {
    for (const viewer of viewers.sniff(input(data))) {
      if (viewer.render && !(viewer.render(input(data)) instanceof Node)) {
        failures.push(viewer.id + ' renders nothing for ' + data);
      }
    }
  }

  equal('hex line', binary.hexLine(bytes('0123456789abcdef'), 0), ['00000000', '30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66', '0123456789abcdef']);
  equal('protobuf', binary.parseProtobuf(Uint8Array.from([8, 150, 1, 18, 2, 104, 105])).map((f) => [f.number, f.type, String(f.value)]), [[1, 'varint', '150'], [2, 'string', 'hi']]);
  equal('no protobuf', binary.parseProtobuf(Uint8Array.from([8])), null);
  // 'abcdabcdabcd': a literal of 4 bytes, then a copy of 8 from 4 back.
  equal('snappy', text.decode(packed.unsnappy(Uint8Array.from([12, 0x0c, 97, 98, 99, 100, 0x11, 4]))), 'abcdabcdabcd');
  for (const bad of [[], [255, 255, 255, 255, 255, 1], [12, 0x0c, 97], [4, 0x11, 4], [3, 0x0c, 97, 98, 99, 100], [255, 255, 255, 127, 0]]) {
    fails('snappy ' + bad, () => packed.unsnappy(Uint8Array.from(bad)));
  }
  for (const form of ['hex', 'base64']) {
    const data = Uint8Array.from({length: 300}, (_, i) => (i * 7) % 256);
    equal('round trip ' + form, Array.from(edit.fromText(edit.toText(data, form), form)), Array.from(data));
  }
  fails('odd hex', () => edit.fromText('abc', 'hex'));
  equal('diff', diff.diffLines('a\nb\nc', 'a\nx\nc\nd').map((l) => l.kind + l.text), [' a', '-b', '+x', ' c', '+d']);
  equal('XML tokens', text.xmlTokens('<a x="1">t<!-- c --></a>'), ['<a x="1">', 't', '<!-- c -->', '</a>']);
  return failures;
}

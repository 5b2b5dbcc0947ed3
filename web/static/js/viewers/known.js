// Data whose format belongs to a program: Curator's service discovery, Kafka, ClickHouse.
import {badge, h} from '../dom.js';
import {join, time, znodeLink} from '../format.js';
import {table} from '../list.js';
import {json, jsonObject} from './json.js';
import {text} from './text.js';

function facts(pairs) {
  return h('dl', {class: 'facts known'}, pairs.filter(([, value]) => value !== null && value !== undefined && value !== '').map(([name, value]) =>
    [h('dt', null, name), h('dd', null, value)]));
}

function withJson(input, ...content) {
  return h('div', {class: 'stack'}, content, h('details', null, h('summary', null, 'JSON'), json.render(input)));
}

export const curator = {
  id: 'curator', label: 'Curator service',
  score(input) {
    const o = jsonObject(input);
    return o && 'name' in o && 'id' in o && 'address' in o && ('serviceType' in o || 'registrationTimeUTC' in o) ? 0.99 : 0;
  },
  render(input) {
    const o = jsonObject(input);
    return withJson(input, facts([
      ['Service', h('strong', null, String(o.name))], ['Instance', h('span', {class: 'mono'}, String(o.id))],
      ['Address', h('span', {class: 'mono'}, o.address + (o.port ? ':' + o.port : '') + (o.sslPort ? ', TLS ' + o.sslPort : ''))],
      ['Registered', typeof o.registrationTimeUTC === 'number' ? time(o.registrationTimeUTC) : null], ['Type', o.serviceType && badge(String(o.serviceType))],
      ['Enabled', o.enabled === false ? badge('disabled', 'warn') : null],
      ['Payload', o.payload && h('span', {class: 'mono break'}, typeof o.payload === 'string' ? o.payload : JSON.stringify(o.payload))],
    ]));
  },
};

const kafkaPath = /\/(?:brokers\/(ids)\/\d+|brokers\/(topics)\/[^/]+|brokers\/topics\/[^/]+\/partitions\/\d+\/(state)|(controller))$/;

export const kafka = {
  id: 'kafka', label: 'Kafka',
  score(input) {
    const match = kafkaPath.exec(input.path);
    const o = match && jsonObject(input);
    return o && ((match[1] && 'host' in o) || (match[2] && 'partitions' in o) || (match[3] && 'isr' in o) || (match[4] && 'brokerid' in o)) ? 0.98 : 0;
  },
  render(input) {
    const o = jsonObject(input);
    const brokers = input.path.replace(/\/(brokers|controller)(\/.*)?$/, '/brokers/ids');
    const broker = (id) => znodeLink(join(brokers, String(id)), String(id));
    const commas = (ids) => (ids || []).flatMap((id, i) => [i > 0 ? ', ' : '', broker(id)]);
    if ('host' in o) {
      return withJson(input, facts([['Broker', h('strong', null, input.path.split('/').at(-1))], ['Host', h('span', {class: 'mono'}, o.host ? o.host + ':' + o.port : null)],
        ['Endpoints', (o.endpoints || []).map((e) => h('div', {class: 'mono'}, e))], ['Rack', o.rack], ['JMX port', o.jmx_port > 0 ? String(o.jmx_port) : null], ['Since', time(Number(o.timestamp))]]));
    }
    if ('isr' in o) {
      return withJson(input, facts([['Leader', o.leader < 0 ? badge('no leader', 'bad') : broker(o.leader)], ['In sync', commas(o.isr)],
        ['Leader epoch', String(o.leader_epoch)], ['Controller epoch', String(o.controller_epoch)]]));
    }
    if ('brokerid' in o) {
      return withJson(input, facts([['Controller', broker(o.brokerid)], ['Since', time(Number(o.timestamp))]]));
    }
    const rows = Object.entries(o.partitions).map(([partition, replicas]) => ({partition: Number(partition), replicas}));
    return withJson(input, facts([['Topic', h('strong', null, input.path.split('/').at(-1))], ['Topic id', o.topic_id && h('span', {class: 'mono'}, o.topic_id)]]), table({
      caption: 'Partitions', rows, sort: 'partition', step: 50,
      columns: [
        {key: 'partition', title: 'Partition', cell: (r) => znodeLink(join(input.path, 'partitions/' + r.partition), String(r.partition))},
        {key: 'leader', title: 'Preferred leader', value: (r) => r.replicas?.[0], cell: (r) => (r.replicas?.length ? broker(r.replicas[0]) : '–')},
        {key: 'replicas', title: 'Replicas', value: (r) => (r.replicas || []).join(', '), cell: (r) => commas(r.replicas)},
        {key: 'moves', title: '', value: (r) => '', cell: (r) => [o.adding_replicas?.[r.partition] && badge('adding ' + o.adding_replicas[r.partition], 'accent'), o.removing_replicas?.[r.partition] && badge('removing ' + o.removing_replicas[r.partition], 'warn')]},
      ],
    }).element);
  },
};

const clickhouseStart = /^(?:(?:[a-z ]+ )?format version: \d+\n|host: [^\n]*\nport: \d+\ntcp_port: )/;

export const clickhouse = {
  id: 'clickhouse', label: 'ClickHouse',
  score: (input) => (input.text !== null && clickhouseStart.test(input.text) ? 0.97 : 0),
  render(input) {
    const pairs = [];
    const rest = [];
    for (const line of input.text.split('\n')) {
      const match = /^([a-z_ ]+):(?: (.*))?$/.exec(line);
      const column = /^`([^`]+)` (.*)$/.exec(line);
      if (column) {
        pairs.push([h('span', {class: 'mono'}, column[1]), h('span', {class: 'mono tok-word'}, column[2])]);
      } else if (match) {
        pairs.push([match[1].replaceAll('_', ' '), h('span', {class: 'mono'}, match[2] || '–')]);
      } else if (line) {
        rest.push(line);
      }
    }
    return h('div', {class: 'stack'}, facts(pairs), rest.length > 0 && h('pre', {class: 'code'}, rest.join('\n')),
      h('details', null, h('summary', null, 'Text'), text.render(input)));
  },
};

import {h} from './dom.js';
export default function (ctx) { return {title: ctx.path, element: h('div', {class: 'page'}, h('h1', null, ctx.path))}; }

// Compiled, not run: the types are those that users write against.
import { startEnsemble, startServer, type Ensemble, type Fault, type Member, type Server } from '@gozkd/testkit';

const server: Server = await startServer({ tls: true, tick: '100ms' });
const fault: Fault = await server.dropReply('create', { path: '/a', times: 2 });
const happened: boolean = await fault.wait(10);
const data: string | Uint8Array | null | undefined = (await server.tree('/'))['/a'];
const ensemble: Ensemble = await startEnsemble(3);
const leader: Member = await ensemble.leader();
await leader.kill();
await ensemble.expireSession((await ensemble.sessions())[0]?.id ?? '0x1');
// @ts-expect-error: there is no such request
await server.fail('nothing', -101);
console.log(happened, data);

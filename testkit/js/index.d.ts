/** A kind of request. any is all that programs send, without connect. */
export type Op =
  | 'any' | 'connect' | 'create' | 'delete' | 'exists' | 'get' | 'set' | 'getACL' | 'setACL' | 'children' | 'multi' | 'sync' | 'watch';

/** Which requests a fault is for: by default the next one of its kind. */
export interface On {
  /** About this znode and those below, as the client names them. */
  path?: string;
  /** How many; -1: all until the fault is removed. */
  times?: number;
  /** Those of this session, as of Ensemble.sessions. */
  session?: string;
}

export interface Options {
  /** ZooKeeper's tickTime, such as "500ms". */
  tick?: string;
  /** The ports of the members; 0: a free one. */
  ports?: number[];
  /** Directories of the members; without them the data is in memory. */
  dirs?: string[];
  /** Whether the ports take TLS, too; see certificate. */
  tls?: boolean;
  /** Users of SASL DIGEST-MD5, with their passwords. */
  users?: Record<string, string>;
  /** Whether the members wait for their first start. */
  down?: boolean;
  /** Fields of the Go type server.Config, such as ReadOnlyMode and MaxClientConns. */
  config?: Record<string, unknown>;
}

/** The id of a session: as of sessions, the number, or node-zookeeper-client's bytes. */
export type SessionId = string | bigint | number | Uint8Array;

export interface Session {
  id: string;
  timeoutMs: number;
  connected: boolean;
  /** The member to which it is connected; 0: none. */
  member: number;
  ephemerals: number;
}

export type Tree = Record<string, string | Uint8Array | null>;

/** Starts a server, on a free port and in memory unless the options say otherwise. */
export function startServer(options?: Options): Promise<Server>;

/** Starts an ensemble of size members (default 3). */
export function startEnsemble(size?: number, options?: Options): Promise<Ensemble>;

/** Members that form an ensemble. Promises are fulfilled when the effect is complete. */
export class Ensemble {
  protected constructor();
  /** The addresses of all members. */
  readonly connectString: string;
  readonly members: Member[];
  /** Ends the servers and their data. */
  close(): Promise<void>;
  /** The member that leads; waits until there is one. */
  leader(): Promise<Member>;
  /** Stops all members that run. Ports and data stay. */
  stop(): Promise<void>;
  /** Starts all members that are down. */
  start(): Promise<void>;
  /** Cuts the links between members of different groups of numbers, such as [1], [2, 3]. */
  partition(...groups: number[][]): Promise<void>;
  /** Restores all links. */
  heal(): Promise<void>;
  /** Carries requests out, and closes the connection in place of the reply. */
  dropReply(op: Op, on?: On): Promise<Fault>;
  /** Holds requests back, and all that their clients send after them. */
  delay(op: Op, ms: number, on?: On): Promise<Fault>;
  /** Answers requests with an error, such as -101 or "NoNode", and does not carry them out. */
  fail(op: Op, code: number | string, on?: On): Promise<Fault>;
  /** Removes all faults. */
  disarm(): Promise<void>;
  sessions(): Promise<Session[]>;
  /** Ends a session, whose client is told that it has expired. */
  expireSession(id: SessionId): Promise<void>;
  /** Breaks the connection of a session, which lives on. */
  cut(id: SessionId): Promise<void>;
  /** Lets time pass for sessions, TTLs and containers. Connected clients count as having pinged. */
  advance(ms: number): Promise<void>;
  /** The data of a znode and of all below it, by path: a string if it is UTF-8. */
  tree(path?: string): Promise<Tree>;
  /** Creates these znodes and missing ones above them, or sets their data; others stay. */
  load(tree: Tree): Promise<void>;
  /** Saves all znodes, for reset. */
  snapshot(): Promise<number>;
  /** Restores the znodes of a snapshot; sessions stay. Removes all faults. */
  reset(snapshot: number): Promise<void>;
  /** Makes the servers like new ones with the znodes of a snapshot: all run, without faults, partitions and sessions. */
  renew(snapshot: number): Promise<void>;
  /** A certificate of CN=name for clients, as PEM. The servers need the option tls. */
  certificate(name: string): Promise<{ ca: string; cert: string; key: string }>;
  /** Members, sessions and znodes, for a person. */
  dump(): Promise<string>;
}

/** A single server. */
export class Server extends Ensemble {
  restart(): Promise<void>;
  /** Ends it like kill -9; what it acknowledged is there after the next start. */
  kill(): Promise<void>;
}

export class Member {
  private constructor();
  readonly number: number;
  readonly address: string;
  /** What it knows, without waiting. */
  status(): Promise<{ state: 'running' | 'paused' | 'down'; serving: boolean; mode: string; leader: number; zxid: string }>;
  /** Stops it cleanly; a leader hands over its lead. */
  stop(): Promise<void>;
  /** Starts it again, with its port and data. */
  start(): Promise<void>;
  restart(): Promise<void>;
  /** Ends it like kill -9; what it acknowledged is there after the next start. */
  kill(): Promise<void>;
  /** Stops it like kill -STOP: connections stay open, and nothing is answered. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Cuts it off from clients and members: nothing arrives, and no connection breaks. */
  partition(): Promise<void>;
  heal(): Promise<void>;
  /** Breaks the connections of its clients, whose sessions live on. */
  disconnect(): Promise<void>;
}

/** A fault that waits for requests. */
export interface Fault {
  /** How often it has happened. */
  count(): Promise<number>;
  /** Waits until it has happened as often as it should; false: it has not. */
  wait(ms?: number): Promise<boolean>;
  remove(): Promise<void>;
}

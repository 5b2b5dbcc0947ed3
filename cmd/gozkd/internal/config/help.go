package config

// Usage is the beginning of Help, printed after a wrong command line.
const Usage = `usage: gozkd [serve] [flags] [zoo.cfg]
       gozkd check-config [flags] [zoo.cfg]
       gozkd COMMAND [flags] ...
       gozkd --help | --version
`

// Help is the output of --help.
const Help = Usage + `
gozkd is a coordination server for ZooKeeper clients. It reads zoo.cfg from the command line or from
the directory ZOOCFGDIR or ZOO_CONF_DIR. Without a zoo.cfg it serves on 127.0.0.1:2181 and keeps its
data in ./` + DefaultDataDir + `. Flags override zoo.cfg. zoo.cfg overrides -D properties in JVMFLAGS and
SERVER_JVMFLAGS, and the variables of ZooKeeper's container images.

commands:
  serve          run a server until SIGINT or SIGTERM (the default): a member of an ensemble if there
                 are several server.N lines, otherwise a standalone server; SIGHUP reloads the
                 configuration
  check-config   print the configuration that serve would use, as a zoo.cfg, and its warnings
  cli            ZooKeeper's shell, zkCli.sh, with additions
  top            show an ensemble live
  status         print the role of a server, and whether the ensemble is healthy
  ruok           report with the exit status whether a server is alive
  backup         copy the data of a server
  restore        found a new ensemble from a backup
  inspect        print information about the data of a stopped server
  init           prepare a data directory, as zkServer-initialize.sh
  start-foreground, version, print-cmd
                 as zkServer.sh. gozkd can replace ZooKeeper's scripts: call it by their name through a
                 symbolic link, or give the name first: gozkd zkServer.sh start-foreground

flags of serve:
  --memory               keep all data in memory; it is lost when the process exits
  --data-dir DIR         data directory (dataDir)
  --id N                 number of this server among the server lines (myid); default: the file DIR/myid
  --client-port PORT     port for clients; 0 means any free port (clientPort)
  --client-address HOST  address to listen on for clients (clientPortAddress)
  --port-file FILE       when ready, write one JSON line with the addresses: {"client":"127.0.0.1:2181"}
  --ensemble N           for a first look: run an ensemble of N servers, 1 to 9, in this process, with
                         consecutive ports and the data in DIR/1, DIR/2, ...
  --log-level LEVEL      trace, debug, info, warn, error or off (gozkd.logLevel)
  --log-json             log one JSON object per line
  -o KEY=VALUE           set any key of zoo.cfg; may be repeated; also -DKEY=VALUE
  --version              print the version
  --help                 print this text

examples:
  gozkd                                              try it: 127.0.0.1:2181, data in ./` + DefaultDataDir + `
  gozkd /etc/zookeeper/conf/zoo.cfg                  use an existing ZooKeeper configuration
  gozkd --memory --client-port 0 --port-file p.json  a server for a test; with --ensemble 3, three
  gozkd -o 4lw.commands.whitelist=* -o tickTime=500  set keys of zoo.cfg

Exit status: 0 after a clean stop, 1 after a failure, 2 if the command line is wrong.
All keys: docs/reference/configuration.md.
`

package org.apache.zookeeper.server;

/** Stands before ZooKeeper's class of this name. */
public class NettyServerCnxnFactory extends ExternalCnxnFactory {
    public static final String PORT_UNIFICATION_KEY = "zookeeper.client.portUnification";
}

package org.apache.zookeeper.server;

/** Stands before ZooKeeper's class of this name. */
public class NIOServerCnxnFactory extends ExternalCnxnFactory {
    public static final String ZOOKEEPER_NIO_SESSIONLESS_CNXN_TIMEOUT = "zookeeper.nio.sessionlessCnxnTimeout";
}

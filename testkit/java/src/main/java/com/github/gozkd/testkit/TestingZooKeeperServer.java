package com.github.gozkd.testkit;

/** A member of a TestingCluster, with the name of Curator's class. */
public final class TestingZooKeeperServer extends Member {
    TestingZooKeeperServer(Servers servers, InstanceSpec spec, int number) { super(servers, spec, number); }
}

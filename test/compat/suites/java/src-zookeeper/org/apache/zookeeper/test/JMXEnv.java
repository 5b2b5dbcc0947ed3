package org.apache.zookeeper.test;

import java.lang.management.ManagementFactory;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;

/** Stands before the tests' class of this name, which waits for beans of a server in the same JVM. */
public class JMXEnv {
    public static void setUp() {}

    public static void tearDown() {}

    public static void dump() {}

    public static MBeanServerConnection conn() {
        return ManagementFactory.getPlatformMBeanServer();
    }

    public static Set<ObjectName> ensureAll(String... expectedNames) {
        return Collections.emptySet();
    }

    public static Set<ObjectName> ensureOnly(String... expectedNames) {
        return Collections.emptySet();
    }

    public static void ensureNone(String... expectedNames) {}

    public static Set<ObjectName> ensureParent(String... expectedNames) {
        return Collections.emptySet();
    }

    public static List<ObjectName> getServerBeans() {
        return Collections.emptyList();
    }
}

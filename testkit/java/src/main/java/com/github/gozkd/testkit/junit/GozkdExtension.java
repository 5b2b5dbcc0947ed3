package com.github.gozkd.testkit.junit;

import com.github.gozkd.testkit.Servers;
import com.github.gozkd.testkit.TestingCluster;
import com.github.gozkd.testkit.TestingServer;
import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** See {@link GozkdTest}. */
public class GozkdExtension implements ParameterResolver, AfterEachCallback {
    private static final Namespace OURS = Namespace.create(GozkdExtension.class);

    /** Servers with the snapshot of their first state. */
    private static final class Kept implements CloseableResource {
        final Servers servers;
        final long empty;

        Kept(Class<?> type) {
            try {
                servers = type == TestingCluster.class ? new TestingCluster(3) : new TestingServer(false);
                servers.start();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
            empty = servers.snapshot();
        }

        @Override
        public void close() throws Exception { servers.close(); }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        boolean ours = type == TestingServer.class || type == TestingCluster.class
                || type == String.class && parameter.isAnnotated(ConnectString.class);
        // Servers of a method are none for BeforeAll, nor for a constructor.
        boolean alive = perClass(context) || context.getTestMethod().isPresent();
        return ours && alive && parameter.getDeclaringExecutable() instanceof Method;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        boolean cluster = parameter.getParameter().getType() == TestingCluster.class;
        Class<?> type = cluster ? TestingCluster.class : TestingServer.class;
        Servers servers = place(context).getStore(OURS).getOrComputeIfAbsent(type, Kept::new, Kept.class).servers;
        return parameter.getParameter().getType() == String.class ? servers.getConnectString() : servers;
    }

    /** Makes servers of a class as new ones. */
    @Override
    public void afterEach(ExtensionContext context) throws Exception {
        for (Class<?> type : new Class<?>[] {TestingServer.class, TestingCluster.class}) {
            Kept kept = perClass(context) ? place(context).getStore(OURS).get(type, Kept.class) : null;
            if (kept != null) {
                kept.servers.renew(kept.empty);
            }
        }
    }

    private static boolean perClass(ExtensionContext context) {
        Class<?> of = context.getRequiredTestClass();
        GozkdTest found = of.getAnnotation(GozkdTest.class);
        return found != null && found.value() == GozkdTest.Scope.PER_CLASS;
    }

    /** The context whose end closes the servers. */
    private static ExtensionContext place(ExtensionContext context) {
        while (perClass(context) && context.getTestMethod().isPresent()) {
            context = context.getParent().get();
        }
        return context;
    }
}

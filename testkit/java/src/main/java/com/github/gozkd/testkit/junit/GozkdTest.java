package com.github.gozkd.testkit.junit;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives the methods of a class of tests their servers, as parameters: a TestingServer, a TestingCluster of three, or
 * with {@link ConnectString} a String with the addresses.
 */
@Target({ElementType.TYPE, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(GozkdExtension.class)
public @interface GozkdTest {
    /** PER_METHOD: each test has servers of its own. PER_CLASS: those of a class share them, and find them empty. */
    Scope value() default Scope.PER_METHOD;

    /** The lives of servers. */
    enum Scope { PER_METHOD, PER_CLASS }
}

package com.github.gozkd.testkit;

/** A request that gozkd-testkit refused, or a program that did not start, with the reason. */
public class TestkitException extends RuntimeException {
    private static final long serialVersionUID = 1;

    TestkitException(String why, Throwable cause) { super(why, cause); }
}

package com.github.gozkd.testkit;

/** A kind of request, for faults. ANY is every kind that programs send, but not CONNECT. */
public enum Op {
    ANY("any"), CONNECT("connect"), CREATE("create"), DELETE("delete"), EXISTS("exists"), GET("get"), SET("set"),
    GET_ACL("getACL"), SET_ACL("setACL"), CHILDREN("children"), MULTI("multi"), SYNC("sync"), WATCH("watch");

    final String word;

    Op(String word) {
        this.word = word;
    }
}

package com.github.gozkd.testkit;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** JSON as Map, List, String, Long, Boolean and null. The interface of gozkd-testkit has no fractions. */
final class Json {
    private static final Object END = new Object();

    private final String text;
    private int at;

    private Json(String text) { this.text = text; }

    static String of(Object value) {
        if (value instanceof Map) {
            return ((Map<?, ?>) value).entrySet().stream().map(e -> of(e.getKey()) + ":" + of(e.getValue())).collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof List) {
            return ((List<?>) value).stream().map(Json::of).collect(Collectors.joining(",", "[", "]"));
        }
        if (value instanceof String) {
            return ((String) value).chars().mapToObj(c -> c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", c) : String.valueOf((char) c))
                    .collect(Collectors.joining("", "\"", "\""));
        }
        return String.valueOf(value);
    }

    static Object parse(String text) { return new Json(text).value(); }

    /** The next value; END at the end of a map or a list. */
    private Object value() {
        while (" \n,:".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        int from = at++;
        switch (text.charAt(from)) {
            case '{':
                Map<Object, Object> map = new LinkedHashMap<>();
                for (Object key = value(); key != END; key = value()) {
                    map.put(key, value());
                }
                return map;
            case '[':
                List<Object> list = new ArrayList<>();
                for (Object item = value(); item != END; item = value()) {
                    list.add(item);
                }
                return list;
            case '}':
            case ']':
                return END;
            case '"':
                return string();
            default:
                while (Character.isLetterOrDigit(text.charAt(at))) {
                    at++;
                }
                String word = text.substring(from, at);
                return word.equals("null") ? null : Character.isLetter(word.charAt(0)) ? (Object) Boolean.valueOf(word) : Long.valueOf(word);
        }
    }

    /** The rest of a string. */
    private String string() {
        StringBuilder out = new StringBuilder();
        for (; text.charAt(at) != '"'; at++) {
            char c = text.charAt(at);
            if (c == '\\') {
                c = text.charAt(++at);
                int which = "bfnrt".indexOf(c);
                if (which >= 0) {
                    c = "\b\f\n\r\t".charAt(which);
                } else if (c == 'u') {
                    c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                    at += 4;
                }
            }
            out.append(c);
        }
        at++;
        return out.toString();
    }
}

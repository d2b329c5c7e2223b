package interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Words of a command line: {@code --name value}. {@code --job name} begins a job, and what follows belongs to it. */
final class Options {

    private final Map<String, String> values = new LinkedHashMap<>();

    private final List<Options> jobs = new ArrayList<>();

    static Options parse(String[] words) {
        Options all = new Options();
        Options current = all;
        for (int i = 0; i < words.length; i += 2) {
            if (!words[i].startsWith("--") || i + 1 == words.length) {
                throw new IllegalArgumentException("expected `--name value`, found `" + words[i] + "`");
            }
            String name = words[i].substring(2);
            if (name.equals("job")) {
                current = new Options();
                all.jobs.add(current);
            }
            current.values.put(name, words[i + 1]);
        }
        return all;
    }

    List<Options> jobs() {
        return jobs;
    }

    String need(String name) {
        String value = values.remove(name);
        if (value == null) {
            throw new IllegalArgumentException("--" + name + " is missing");
        }
        return value;
    }

    String get(String name, String otherwise) {
        String value = values.remove(name);
        return value == null ? otherwise : value;
    }

    int number(String name, int otherwise) {
        return Integer.parseInt(get(name, String.valueOf(otherwise)));
    }

    boolean flag(String name, boolean otherwise) {
        String value = get(name, String.valueOf(otherwise));
        if (!value.equals("true") && !value.equals("false")) {
            throw new IllegalArgumentException("--" + name + " is `true` or `false`, not `" + value + "`");
        }
        return value.equals("true");
    }

    /** What is left begins with {@code prop.}, or is a mistake. */
    Map<String, String> props() {
        Map<String, String> props = new LinkedHashMap<>();
        values.forEach((name, value) -> {
            if (!name.startsWith("prop.")) {
                throw new IllegalArgumentException("unknown option --" + name);
            }
            props.put(name.substring("prop.".length()), value);
        });
        return props;
    }
}

package interop;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicInteger;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import org.apache.shardingsphere.elasticjob.api.ShardingContext;

/**
 * One line of JSON for each event: those that the Rust workers print, so that one checker judges both. The crate
 * {@code elasticjob-fleet} says what they are. Java knows neither for which fire it runs, nor why, nor a token.
 */
final class Events {

    private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().create();

    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private final AtomicInteger runs = new AtomicInteger();

    private final String process;

    private final String instance;

    private final Path notes;

    Events(String process, String instance, String notes) {
        this.process = process;
        this.instance = instance;
        this.notes = notes == null ? null : Path.of(notes);
    }

    void born() {
        JsonObject line = line("born");
        line.addProperty("pid", ProcessHandle.current().pid());
        print(line);
    }

    void ready() {
        JsonObject line = line("ready");
        line.addProperty("instance", instance);
        print(line);
    }

    /** A job could not be started. */
    void refused(String job, RuntimeException error) {
        boolean conflict = String.valueOf(error.getMessage()).contains("Job conflict");
        JsonObject line = line("record");
        line.addProperty("job", job);
        line.addProperty("event", "stopped");
        line.addProperty("reason", conflict ? "conflict" : "broken");
        line.addProperty("error", error.toString());
        if (conflict) {
            line.addProperty("theirs", error.getMessage());
            line.addProperty("ours", "");
        }
        print(line);
    }

    /** An item begins. Returns the name of its run. */
    String start(ShardingContext context) {
        String run = process + "-" + runs.incrementAndGet();
        JsonObject line = line("start");
        line.addProperty("instance", instance);
        line.addProperty("job", context.getJobName());
        line.addProperty("item", context.getShardingItem());
        line.addProperty("total", context.getShardingTotalCount());
        line.addProperty("run", run);
        line.addProperty("task", context.getTaskId());
        line.addProperty("parameter", context.getJobParameter());
        print(line);
        return run;
    }

    /** An item ends: {@code succeeded}, {@code failed} or {@code cancelled}. */
    void end(String run, String outcome) {
        JsonObject line = line("end");
        line.addProperty("run", run);
        line.addProperty("outcome", outcome);
        print(line);
    }

    /** Something that a test wants to know and that is no event: a line of the file for notes. */
    synchronized void note(String text) {
        if (notes == null) {
            return;
        }
        try {
            Files.writeString(notes, text + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new IllegalStateException("the note cannot be written", error);
        }
    }

    private JsonObject line(String kind) {
        JsonObject line = new JsonObject();
        line.addProperty("at", System.currentTimeMillis());
        line.addProperty("process", process);
        line.addProperty("kind", kind);
        return line;
    }

    /** One write for each line: several threads print. */
    private synchronized void print(JsonObject line) {
        out.println(GSON.toJson(line));
    }
}

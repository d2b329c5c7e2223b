package interop;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;

import org.apache.shardingsphere.elasticjob.api.ShardingContext;
import org.apache.shardingsphere.elasticjob.dataflow.job.DataflowJob;
import org.apache.shardingsphere.elasticjob.simple.job.SimpleJob;

/** Jobs that tell when they begin and when they end. */
final class Jobs {

    private Jobs() {
    }

    /** Takes a given time. */
    static final class Simple implements SimpleJob {

        private final Events events;

        private final long workMillis;

        Simple(Events events, long workMillis) {
            this.events = events;
            this.workMillis = workMillis;
        }

        @Override
        public void execute(ShardingContext context) {
            String run = events.start(context);
            String outcome = "cancelled";
            try {
                Thread.sleep(workMillis);
                outcome = "succeeded";
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            } finally {
                events.end(run, outcome);
            }
        }
    }

    /** Throws. */
    static final class Failing implements SimpleJob {

        @Override
        public void execute(ShardingContext context) {
            throw new IllegalStateException("the database is away");
        }
    }

    /**
     * Finds five elements for each item, {@code item*10} and so on, at most two at a time, and then none. It begins
     * anew with every start of the process.
     */
    static final class Dataflow implements DataflowJob<Integer> {

        private static final int ELEMENTS = 5;

        private static final int BATCH = 2;

        private final Events events;

        private final Map<Integer, Integer> next = new ConcurrentHashMap<>();

        Dataflow(Events events) {
            this.events = events;
        }

        @Override
        public List<Integer> fetchData(ShardingContext context) {
            int item = context.getShardingItem();
            int from = next.getOrDefault(item, 0);
            int to = Math.min(from + BATCH, ELEMENTS);
            next.put(item, to);
            List<Integer> data = IntStream.range(from, to).mapToObj(it -> item * 10 + it).toList();
            events.note(item + " fetch " + data);
            return data;
        }

        @Override
        public void processData(ShardingContext context, List<Integer> data) {
            events.note(context.getShardingItem() + " process " + data);
        }
    }
}

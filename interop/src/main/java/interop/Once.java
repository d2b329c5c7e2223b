package interop;

import org.apache.shardingsphere.elasticjob.infra.listener.ShardingContexts;
import org.apache.shardingsphere.elasticjob.lite.api.listener.AbstractDistributeOnceElasticJobListener;

/** Notes when a round begins and when it has ended, once for all processes. Java makes it from its name. */
public final class Once extends AbstractDistributeOnceElasticJobListener {

    /** What a configuration calls it. */
    static final String TYPE = "interop-once";

    private static final long PATIENCE_MILLIS = 20_000;

    private static volatile Events events;

    public Once() {
        super(PATIENCE_MILLIS, PATIENCE_MILLIS);
    }

    static void tell(Events target) {
        events = target;
    }

    @Override
    public void doBeforeJobExecutedAtLastStarted(ShardingContexts contexts) {
        events.note("before, by java");
    }

    @Override
    public void doAfterJobExecutedAtLastCompleted(ShardingContexts contexts) {
        events.note("after, by java");
    }

    @Override
    public String getType() {
        return TYPE;
    }
}

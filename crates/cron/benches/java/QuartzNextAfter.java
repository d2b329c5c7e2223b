import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import org.quartz.CronExpression;

/**
 * Times Quartz on the rows of the benchmark: reads category, expression, zone and epoch milliseconds from standard
 * input, writes each category with the median time of one question in nanoseconds.
 */
public final class QuartzNextAfter {

    private static final int PASSES = 15;

    private static final long WARM_UP_NANOS = 700_000_000L;

    private static long sink;

    public static void main(final String[] args) throws Exception {
        Map<String, List<Question>> categories = new LinkedHashMap<>();
        Map<String, CronExpression> expressions = new HashMap<>();
        BufferedReader reader = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = reader.readLine(); null != line; line = reader.readLine()) {
            String[] columns = line.split("\t");
            String key = columns[1] + "\t" + columns[2];
            CronExpression expression = expressions.get(key);
            if (null == expression) {
                expression = new CronExpression(columns[1].replace("\\t", "\t"));
                expression.setTimeZone(TimeZone.getTimeZone(columns[2]));
                expressions.put(key, expression);
            }
            categories.computeIfAbsent(columns[0], ignored -> new ArrayList<>())
                .add(new Question(expression, new Date(Long.parseLong(columns[3]))));
        }
        for (Map.Entry<String, List<Question>> each : categories.entrySet()) {
            System.out.println(each.getKey() + "\t" + medianNanos(each.getValue()));
        }
        if (42 == sink) {
            System.err.println("The answers are summed up so that they are not optimised away.");
        }
    }

    private static long medianNanos(final List<Question> questions) {
        long start = System.nanoTime();
        while (System.nanoTime() - start < WARM_UP_NANOS) {
            pass(questions);
        }
        long[] nanos = new long[PASSES];
        for (int i = 0; i < PASSES; i++) {
            nanos[i] = pass(questions) / questions.size();
        }
        Arrays.sort(nanos);
        return nanos[PASSES / 2];
    }

    private static long pass(final List<Question> questions) {
        long start = System.nanoTime();
        for (Question each : questions) {
            Date next = each.expression.getNextValidTimeAfter(each.instant);
            sink += null == next ? 1 : next.getTime();
        }
        return System.nanoTime() - start;
    }

    private static final class Question {

        private final CronExpression expression;

        private final Date instant;

        private Question(final CronExpression expression, final Date instant) {
            this.expression = expression;
            this.instant = instant;
        }
    }
}

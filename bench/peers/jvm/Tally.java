import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The same as lib/tally.ts, for many threads: what was handled, by each record's number. */
final class Tally {
  final int expected;
  private final AtomicIntegerArray seen;
  private final AtomicInteger different = new AtomicInteger();
  private final AtomicInteger calls = new AtomicInteger();
  private final AtomicInteger early = new AtomicInteger();
  private final CountDownLatch all = new CountDownLatch(1);

  Tally(int expected) {
    this.expected = expected;
    this.seen = new AtomicIntegerArray(expected);
  }

  /** Returns how many calls there were, this one too. */
  int saw(int index, boolean isEarly) {
    if (isEarly) early.incrementAndGet();
    int count = calls.incrementAndGet();
    if (seen.getAndSet(index, 1) == 0 && different.incrementAndGet() == expected) all.countDown();
    return count;
  }

  void complete(long seconds) throws InterruptedException {
    all.await(seconds, TimeUnit.SECONDS);
  }

  int lost() {
    return expected - different.get();
  }

  int doubled() {
    return calls.get() - different.get();
  }

  int early() {
    return early.get();
  }

  /** How a consumer of this configuration fetches, as lib/kafka.ts says it of kafkajs. */
  static String fetches(java.util.Map<String, Object> given) {
    var config = new java.util.HashMap<>(given);
    config.putIfAbsent("key.deserializer", ByteArrayDeserializer.class);
    config.putIfAbsent("value.deserializer", ByteArrayDeserializer.class);
    var used = new ConsumerConfig(config);
    return String.format(
        "%d KiB of a partition, %d KiB in all, waits up to %d ms for %d byte, %d records a poll",
        used.getInt("max.partition.fetch.bytes") / 1024,
        used.getInt("fetch.max.bytes") / 1024,
        used.getInt("fetch.max.wait.ms"),
        used.getInt("fetch.min.bytes"),
        used.getInt("max.poll.records"));
  }

  /** As numbered() in lib/kafka.ts writes it: little-endian, at the front of the value. */
  static int numberOf(byte[] value) {
    return (value[0] & 255) | (value[1] & 255) << 8 | (value[2] & 255) << 16 | (value[3] & 255) << 24;
  }
}

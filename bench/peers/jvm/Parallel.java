import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Confluent's Parallel Consumer: brokers, topic, group, records, warm-up, wait (ms), concurrency. Prints one line of JSON. */
final class Parallel {
  public static void main(String[] args) throws Exception {
    int records = Integer.parseInt(args[3]);
    int warmUp = Integer.parseInt(args[4]);
    long wait = Long.parseLong(args[5]);
    Tally tally = new Tally(records);
    AtomicLong began = new AtomicLong();
    AtomicLong ended = new AtomicLong();
    Map<String, Object> config = Map.of(
        "bootstrap.servers", args[0],
        "group.id", args[2],
        "enable.auto.commit", "false",
        "auto.offset.reset", "earliest",
        "key.deserializer", ByteArrayDeserializer.class,
        "value.deserializer", ByteArrayDeserializer.class);
    ParallelStreamProcessor<byte[], byte[]> processor = ParallelStreamProcessor.createEosStreamProcessor(
        ParallelConsumerOptions.<byte[], byte[]>builder()
            .consumer(new KafkaConsumer<byte[], byte[]>(config))
            .ordering(ParallelConsumerOptions.ProcessingOrder.KEY)
            .maxConcurrency(Integer.parseInt(args[6]))
            .build());
    processor.subscribe(List.of(args[1]));
    processor.poll(context -> {
      try {
        Thread.sleep(wait);
      } catch (InterruptedException e) {
        throw new RuntimeException(e);
      }
      int count = tally.saw(Tally.numberOf(context.value()), false);
      if (count == warmUp) began.set(System.nanoTime());
      if (count == records) ended.set(System.nanoTime());
    });
    tally.complete(180);
    processor.closeDrainFirst();
    double rate = (records - warmUp) / ((ended.get() - began.get()) / 1e9);
    System.out.printf(java.util.Locale.ROOT, "{\"value\":%.3f,\"lost\":%d,\"duplicated\":%d,\"early\":0,\"fetch\":\"%s\"}%n", rate, tally.lost(), tally.doubled(), Tally.fetches(config));
    System.exit(0);
  }
}

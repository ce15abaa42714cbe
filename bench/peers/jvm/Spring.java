import java.math.BigInteger;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.retrytopic.RetryTopicConfiguration;
import org.springframework.kafka.retrytopic.RetryTopicConfigurationBuilder;
import org.springframework.kafka.retrytopic.RetryTopicConfigurationSupport;
import org.springframework.kafka.retrytopic.RetryTopicHeaders;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * Spring Kafka with retry topics, as by @RetryableTopic: brokers, topic, group, records, warm-up, what fails (`once`: each
 * record at its first attempt; a number: one in so many, for good), delay (ms), `as-it-comes` or `tuned`.
 * As it comes: after each record that fails, what was polled with it is polled again. Tuned: it goes on with what it has.
 * Prints one line of JSON.
 */
public final class Spring {
  public static String[] args;
  static Tally tally;
  static final AtomicLong began = new AtomicLong();
  static final AtomicLong ended = new AtomicLong();
  static final ConcurrentLinkedQueue<Long> late = new ConcurrentLinkedQueue<>();

  static Map<String, Object> config() {
    return Map.of("bootstrap.servers", args[0], "auto.offset.reset", "earliest");
  }

  static final class Again extends RuntimeException {}

  static final class Fatal extends RuntimeException {}

  @Configuration
  @EnableKafka
  public static class App extends RetryTopicConfigurationSupport {
    @Override
    protected void configureCustomizers(CustomizersConfigurer customizers) {
      if (args[7].equals("tuned")) customizers.customizeErrorHandler(handler -> handler.setSeekAfterError(false));
    }

    @Bean
    public ConsumerFactory<byte[], byte[]> consumerFactory() {
      return new DefaultKafkaConsumerFactory<>(config(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Bean
    public ConcurrentKafkaListenerContainerFactory<byte[], byte[]> kafkaListenerContainerFactory() {
      var factory = new ConcurrentKafkaListenerContainerFactory<byte[], byte[]>();
      factory.setConsumerFactory(consumerFactory());
      return factory;
    }

    @Bean
    public KafkaTemplate<byte[], byte[]> kafkaTemplate() {
      Map<String, Object> config = Map.of("bootstrap.servers", args[0]);
      return new KafkaTemplate<>(
          new DefaultKafkaProducerFactory<>(config, new ByteArraySerializer(), new ByteArraySerializer()));
    }

    @Bean
    public KafkaAdmin kafkaAdmin() {
      return new KafkaAdmin(Map.of("bootstrap.servers", args[0]));
    }

    @Bean
    public TaskScheduler taskScheduler() {
      return new ThreadPoolTaskScheduler();
    }

    @Bean
    public RetryTopicConfiguration retries(KafkaTemplate<byte[], byte[]> template) {
      return RetryTopicConfigurationBuilder.newInstance()
          .fixedBackOff(Long.parseLong(args[6]))
          .maxAttempts(3)
          .useSingleTopicForSameIntervals()
          .notRetryOn(Fatal.class)
          .traversingCauses()
          .autoCreateTopics(true, 6, (short) 1)
          .includeTopic(args[1])
          .create(template);
    }

    @Bean
    public Listener listener() {
      return new Listener();
    }
  }

  public static class Listener {
    private final int records = Integer.parseInt(args[3]);
    private final int warmUp = Integer.parseInt(args[4]);
    private final boolean once = args[5].equals("once");
    private final int badOneIn = once ? 0 : Integer.parseInt(args[5]);

    @KafkaListener(topics = "#{T(Spring).args[1]}", groupId = "#{T(Spring).args[2]}")
    public void handle(ConsumerRecord<byte[], byte[]> record) {
      int index = Tally.numberOf(record.value());
      if (once) {
        Header due = record.headers().lastHeader(RetryTopicHeaders.DEFAULT_HEADER_BACKOFF_TIMESTAMP);
        if (due == null) {
          began.compareAndSet(0, System.nanoTime());
          throw new Again();
        }
        long lateness = System.currentTimeMillis() - new BigInteger(due.value()).longValue();
        late.add(lateness);
        tally.saw(index, lateness < 0);
        ended.set(System.nanoTime());
        return;
      }
      int count = tally.saw(index, false);
      if (count == warmUp) began.set(System.nanoTime());
      if (count == records) ended.set(System.nanoTime());
      if (index % badOneIn == 0) throw new Fatal();
    }
  }

  public static void main(String[] given) throws Exception {
    args = given;
    int records = Integer.parseInt(args[3]);
    tally = new Tally(records);
    try (var context = new AnnotationConfigApplicationContext(App.class)) {
      tally.complete(60);
      // The last commits, and the last dead letter, come after the last call.
      Thread.sleep(1000);
    }
    double seconds = (ended.get() - began.get()) / 1e9;
    double value = args[5].equals("once") ? seconds : (records - Integer.parseInt(args[4])) / seconds;
    long[] sorted = late.stream().mapToLong(Long::longValue).sorted().toArray();
    System.out.printf(
        Locale.ROOT,
        "{\"value\":%.3f,\"lost\":%d,\"duplicated\":%d,\"early\":%d,\"late\":%s,\"fetch\":\"%s\"}%n",
        value, tally.lost(), tally.doubled(), tally.early(), Arrays.toString(sorted), Tally.fetches(config()));
    System.exit(0);
  }
}

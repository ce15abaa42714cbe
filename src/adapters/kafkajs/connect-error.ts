/** How deep kafkajs nests what it wraps. */
const DEPTH = 5

/** What an error of a connection mostly means, and the mend; by the names that kafkajs, Node and Kafka give. */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [
    /^(KafkaJSSASLAuthenticationError|SASL_AUTHENTICATION_FAILED)$/,
    'the broker does not accept the user name or the password; mend sasl of the Kafka client',
  ],
  [
    /^UNSUPPORTED_SASL_MECHANISM$/,
    'the listener does not offer this mechanism; give sasl.mechanism one that it has, such as scram-sha-512',
  ],
  [
    /^ILLEGAL_SASL_STATE$/,
    'the listener takes no SASL; give brokers the port of one that does, or take sasl out of the Kafka client',
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    "the broker's certificate is for another name; give brokers a name that stands in it, or set ssl.servername",
  ],
  [/^CERT_HAS_EXPIRED$/, "the broker's certificate has expired; renew it"],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_[A-Z_]+|CERT_[A-Z_]+)$/,
    "the broker's certificate is not trusted here; give the certificate of who has signed it as ssl.ca",
  ],
  [
    /^ERR_SSL_\w*(CERTIFICATE|UNKNOWN_CA|DECRYPT_ERROR)\w*$/,
    'the broker asks for a certificate of the client that it trusts; give ssl.cert and ssl.key, or ssl.pfx',
  ],
  [
    /^(ERR_SSL_\w+|EPROTO|before secure TLS connection)$/,
    'the listener does not speak TLS; give brokers the port of one that does, or take ssl out of the Kafka client',
  ],
  [
    /^KafkaJSConnectionClosedError$/,
    'the broker closes the connection, mostly because its listener wants TLS or SASL; set ssl or sasl of the Kafka ' +
      'client, or give brokers the port of a listener that wants neither',
  ],
]

interface Named {
  name?: unknown
  type?: unknown
  code?: unknown
  message?: unknown
  cause?: unknown
}

/** What this error means and what mends it; undefined where it is none that settings of the client mend. */
export function explainConnect(error: unknown): string | undefined {
  const names: string[] = []
  let at = error as Named | null | undefined
  for (let i = 0; i < DEPTH && typeof at === 'object' && at !== null; i++) {
    for (const name of [at.type, at.code, at.name]) if (typeof name === 'string') names.push(name)
    // Node has one code, ECONNRESET, for this and for every other connection that is cut.
    if (String(at.message).includes('before secure TLS connection')) names.push('before secure TLS connection')
    at = at.cause as typeof at
  }
  return MEANINGS.find(([pattern]) => names.some((name) => pattern.test(name)))?.[1]
}

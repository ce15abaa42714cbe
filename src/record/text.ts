/**
 * The longest start of `text` that takes at most `bytes` bytes as UTF-8, never cut inside a character. A half
 * surrogate counts the three bytes of the replacement character that it is written as.
 */
export function truncateUtf8(text: string, bytes: number): string {
  // A UTF-16 unit takes at most three bytes: most texts need no look at their bytes.
  if (text.length * 3 <= bytes) return text
  if (!(bytes >= 1)) return ''
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.floor(bytes)))
  return text.slice(0, read)
}

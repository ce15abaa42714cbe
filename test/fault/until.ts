/** Waits until `met()` (it may look at a broker), looking every 50 ms; says what it waited for when it does not come. */
export function until(what: string, met: () => boolean | Promise<boolean>, withinMs = 30_000): Promise<void> {
  const startedAt = Date.now()
  let looking = false
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearInterval(timer)
      settle()
    }
    const look = async (): Promise<void> => {
      if (looking) return
      looking = true
      try {
        if (await met()) end(resolve)
        else if (Date.now() - startedAt > withinMs) end(() => reject(new Error(`not within ${withinMs} ms: ${what}`)))
      } catch (error) {
        end(() => reject(error))
      } finally {
        looking = false
      }
    }
    const timer = setInterval(() => void look(), 50)
  })
}

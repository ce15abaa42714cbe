/**
 * The slice of the Standard Schema contract (version 1, standardschema.dev) that we call. Schemas of zod, valibot,
 * arktype and others fit as they are; the contract is a shape under one key, so nothing has to be imported for it.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    /** The library the schema comes from, for messages. */
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    /** Exists for the type checker only. */
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The type that a schema gives out. */
export type SchemaOutput<S> = S extends StandardSchema<infer Output> ? Output : never

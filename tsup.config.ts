import { defineConfig, type Options } from 'tsup'

const common: Options = {
  entry: { index: 'src/index.ts', testing: 'src/testing/index.ts' },
  target: 'node20',
  platform: 'node',
  sourcemap: true,
  dts: true,
  // The user's own client: bundling or importing it would bring a second copy beside theirs.
  external: ['kafkajs'],
}

export default defineConfig([
  { ...common, format: 'esm', splitting: true },
  // p-limit and its own dependency are ESM only, so `require` cannot load them: the CJS build carries them inside.
  { ...common, format: 'cjs', splitting: false, noExternal: ['p-limit', 'yocto-queue'] },
])

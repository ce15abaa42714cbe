export default { testMatch: ['**/*.test.mjs'], moduleFileExtensions: ['mjs', 'cjs', 'js', 'json'], transform: {} }

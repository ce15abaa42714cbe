module.exports = { testMatch: ['**/*.test.cjs'], transform: {}, fakeTimers: { enableGlobally: true } }

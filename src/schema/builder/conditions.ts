/** Extensions of an input type whose members are conditions on rows: a variable in one must have a value. */
export const condition = { isCondition: true } as const;

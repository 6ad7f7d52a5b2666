// Preloaded by `--import`: the parent moves the clock of this process by a message. Monotonic clocks never jump, so they are not changed.

const RealDate = Date;
let offsetMs = 0;
const now = () => RealDate.now() + offsetMs;

globalThis.Date = new Proxy(RealDate, {
  apply: () => new RealDate(now()).toString(),
  construct: (target, values, newTarget) =>
    Reflect.construct(target, values.length === 0 ? [now()] : values, newTarget),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});

process.on('message', (message: ClockMessage) => {
  offsetMs = message.clockOffsetMs;
});
// A process with nothing else to do must be able to end.
process.channel?.unref();

export interface ClockMessage {
  readonly clockOffsetMs: number;
}

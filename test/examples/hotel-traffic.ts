import { loyalty, payment, reservation } from '../../examples/hotel/events.ts';
import { payReservation } from '../../examples/hotel/payment.ts';
import { cancelReservation } from '../../examples/hotel/reservation.ts';
import { beginning, type Command, CommandRejected, type GlobalPosition } from '../../src/index.ts';
import { executeCommand } from '../../src/runtime/commands/command-handler.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import type { Database } from '../../src/store/postgres/database.ts';
import { type HotelEvent, isOver, stayOf } from './hotel-judge.ts';
import { reservation as reservationOfRelease1 } from './hotel-release-1.ts';

export interface HotelTrafficOptions {
  readonly db: Database;
  readonly random: () => number;
  /** The longest time that anything waits for a timer, in milliseconds. */
  readonly longest: number;
}

/** What the guest of a reservation has yet to do. */
interface Plan {
  readonly reservationId: string;
  readonly does: 'pay' | 'cancel';
}

/** Guests of the hotel. What they do, and in which order, follows from random numbers; what comes in time follows from the machine. */
export class HotelTraffic {
  readonly #options: HotelTrafficOptions;
  readonly #log: EventLog;
  readonly #logOfRelease1: EventLog;
  readonly #soon: Plan[] = [];
  /** Of three in five stays. Their reservations do not expire, and are under way until {@link HotelTraffic.everyonePays}. */
  readonly #late: Plan[] = [];
  readonly #events: HotelEvent[] = [];
  #learnt: GlobalPosition = beginning;
  #reserved = 0;

  constructor(options: HotelTrafficOptions) {
    this.#options = options;
    this.#log = createEventLog(options.db, [reservation, payment, loyalty]);
    this.#logOfRelease1 = createEventLog(options.db, [reservationOfRelease1]);
  }

  /** Reserves so many rooms, by gateways of these releases, while other guests pay and cancel. Calls `meanwhile` at a random moment. */
  async go(rooms: number, releases: readonly (1 | 2 | 3)[], meanwhile: () => Promise<void>): Promise<void> {
    const last = this.#reserved + rooms;
    const interruptAt = this.#reserved + Math.floor(this.#draw() * rooms);
    const reached = Promise.withResolvers<void>();
    const traffic = async () => {
      while (this.#reserved < last) {
        if (this.#reserved >= interruptAt) reached.resolve();
        const reserving = Array.from({ length: Math.min(5, last - this.#reserved) }, () => this.#reserve(releases));
        const others = this.#soon.splice(0, Math.floor(this.#draw() * 6));
        await Promise.all([...reserving, ...others.map((plan) => this.#do(plan))]);
      }
      reached.resolve();
    };
    await Promise.all([traffic(), reached.promise.then(meanwhile)]);
  }

  /** Carries out all plans. From now on, every stay comes to its end by itself. */
  async everyonePays(): Promise<void> {
    for (const plans of [this.#soon, this.#late])
      while (plans.length > 0) await Promise.all(plans.splice(0, 5).map((plan) => this.#do(plan)));
  }

  head(): Promise<GlobalPosition> {
    return this.#log.head();
  }

  /** The whole log. */
  async events(): Promise<readonly HotelEvent[]> {
    const upTo = await this.#log.horizon();
    while (this.#learnt < upTo) {
      const page = await this.#log.readAll({ after: this.#learnt, upTo, limit: 10_000 });
      this.#events.push(...(page.events as readonly HotelEvent[])); // the log holds no others
      this.#learnt = page.upTo;
    }
    return this.#events;
  }

  /** The number of stays that are not over. */
  async underWay(): Promise<number> {
    const stays = Map.groupBy(await this.events(), stayOf);
    return [...stays.values()].filter((stay) => !isOver(stay)).length;
  }

  async #reserve(releases: readonly (1 | 2 | 3)[]): Promise<void> {
    const { longest } = this.#options;
    const reservationId = `r${++this.#reserved}`;
    const isLate = this.#reserved % 5 < 3;
    const [pays, cancels] = [isLate || this.#draw() < 0.7, !isLate && this.#draw() < 0.2];
    const arrival = Date.now() + longest * this.#draw();
    const stay = {
      guestId: `guest-${Math.floor(this.#draw() * 10)}`,
      arrival: new Date(arrival).toISOString(),
      departure: new Date(arrival + longest * this.#draw()).toISOString(),
      payWithinMs: isLate ? 3_600_000 : Math.ceil(longest * this.#draw() ** 2) + 1,
    };
    const total = Math.floor(this.#draw() * 100_000) / 100;
    const release = releases[Math.floor(this.#draw() * releases.length)];
    await (release === 1
      ? this.#logOfRelease1.append({
          family: reservationOfRelease1,
          streamId: reservationId,
          events: [{ type: 'RoomReserved', payload: { ...stay, total } }],
        })
      : this.#log.append({
          family: reservation,
          streamId: reservationId,
          events: [{ type: 'RoomReserved', payload: { ...stay, price: total.toFixed(2) } }],
        }));
    const plans = isLate ? this.#late : this.#soon;
    if (pays) plans.push({ reservationId, does: 'pay' });
    if (cancels) plans.push({ reservationId, does: 'cancel' });
  }

  #do({ reservationId, does }: Plan): Promise<void> {
    return this.#try(does === 'pay' ? payReservation : cancelReservation, reservationId);
  }

  /** A guest may come too late. */
  async #try(command: Command, reservationId: string): Promise<void> {
    try {
      await executeCommand(this.#log, command, { reservationId });
    } catch (error) {
      if (!(error instanceof CommandRejected)) throw error;
    }
  }

  #draw(): number {
    return this.#options.random();
  }
}

from multiprocessing import shared_memory, Process, Value, Array
import multiprocessing as mp


def fill(name, value, array):
    block = shared_memory.SharedMemory(name=name)
    block.buf[:4] = b"abcd"
    block.close()
    value.value = 42
    array[1] = 2.5


if __name__ == "__main__":
    block = shared_memory.SharedMemory(create=True, size=100)
    value, array = Value("i", 0), Array("d", 3)
    p = Process(target=fill, args=(block.name, value, array))
    p.start()
    p.join()
    print(bytes(block.buf[:4]), value.value, array[:], block.size)
    block.close()
    block.unlink()
    sl = shared_memory.ShareableList([1, "a", None])
    print(list(sl))
    sl.shm.close()
    sl.shm.unlink()
